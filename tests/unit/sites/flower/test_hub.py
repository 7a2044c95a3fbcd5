"""The coordinator's end of Flower, what it may reach at a site, and how its processes end."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import Error
from flwr.common.constant import ErrorCode

from brainfed.runtime import UserError
from brainfed.sites import ABSENT, NOBODY, REFUSED, BrokenPacketError, Packet, SiteError
from brainfed.sites._packet import NEXT
from brainfed.sites.flower import Outward
from brainfed.sites.flower import _hub as hub
from brainfed.sites.flower._connection import QUIET_S, SILENCE_S
from brainfed.sites.flower._hub import Connection, SiteRegistry
from brainfed.sites.flower._messages import Signer, from_records, to_records
from support.processes.awaited import until_true
from support.sites.fake_grid import NAMES, Grid, echo, message
from support.sites.flower_sites import tensors


@pytest.fixture
def asked(monkeypatch):
    """Replies of sites, by name, to one question; they have ten minutes."""
    monkeypatch.setattr(hub, "Message", message)

    def ask(answer):
        study = hub.Hub(Grid(answer), NAMES, {}, Signer(ec.generate_private_key(ec.SECP256R1())))
        return {NAMES[code]: reply for code, reply in study.ask({code: Packet("go") for code in NAMES}, 600.0).items()}

    return ask


def test_a_site_that_has_another_request_now_ends_the_wait(asked):
    """Its job was started again in the middle of a secure sum: nothing is gained by asking the same once more."""
    begin = time.monotonic()
    replies = asked(lambda name, packet: Packet(ABSENT) if name == "south" else echo(name, packet))
    assert {name: reply.kind for name, reply in replies.items()} == {"north": "reply", "south": ABSENT, "east": "reply"}
    assert time.monotonic() - begin < 300


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (Packet(NOBODY), None),
        (Error(ErrorCode.NODE_UNAVAILABLE, "no disk"), "its connection was lost"),
        (Error(ErrorCode.UNKNOWN, "no disk"), "no disk"),
    ],
    ids=["no client is open", "unavailable", "unknown"],
)
def test_a_site_that_could_not_answer_is_asked_again_and_the_reason_said(asked, caplog, first, reason):
    tries = []

    def answer(name, packet):
        tries.append(name)
        return first if tries.count("south") == 1 and name == "south" else echo(name, packet)

    with caplog.at_level("WARNING"):
        assert {reply.kind for reply in asked(answer).values()} == {"reply"}
    assert sorted(tries) == ["east", "north", "south", "south"]
    said = [f"site south did not get a message, which is sent again: {reason}"] if reason else []
    assert [each.getMessage() for each in caplog.records] == said


@pytest.mark.parametrize("broken", [b"", b"nonsense", Packet("refused"), Packet("refused", {"sentence": 3})])
def test_a_reply_that_cannot_be_read_names_its_site(asked, broken):
    with pytest.raises(SiteError, match=r"site 'south': expected a .* found") as raised:
        asked(lambda name, packet: broken if name == "south" else echo(name, packet))
    assert raised.value.code == 1


def test_an_introduction_that_cannot_be_read_is_of_the_site_of_the_nodes_key(monkeypatch):
    """A site of another version is refused alone; a node whose key is not known ends the study."""
    monkeypatch.setattr(hub, "Message", message)
    grid = Grid(introduced=lambda name: b"nonsense" if name == "south" else None)
    grid.get_nodes = lambda: [SimpleNamespace(node_id=code + 1, last_activated_at="", public_key=name.encode())
                              for code, name in NAMES.items()]  # fmt: skip
    signer = Signer(ec.generate_private_key(ec.SECP256R1()))
    known = hub.Hub(grid, NAMES, {name: name.encode() for name in NAMES.values()}, signer)
    with pytest.raises(SiteError, match=r"site 'south': expected a packet, found 8 bytes") as raised:
        known.ask({1: Packet("go")}, 600.0)
    assert raised.value.code == 1
    with pytest.raises(UserError, match=r"^a site that has not said its name: expected a packet") as raised:
        hub.Hub(grid, NAMES, {}, signer).ask({1: Packet("go")}, 600.0)
    assert not isinstance(raised.value, SiteError)


def introduced(name: str, key: bytes, node: int = 1) -> tuple[Connection, Packet]:
    return Connection(node, "now", key), Packet("site", {"site": name})


def test_a_node_is_the_site_of_its_key_whatever_it_says():
    registry = SiteRegistry({0: "north", 1: "south"}, {"north": b"key-n", "south": b"key-s"})
    registry.enter(*introduced("south", b"key-n\n"), connected=[1, 2])
    assert (registry.node_of(0), registry.node_of(1)) == (1, None)
    registry.enter(Connection(2, "now", b"key-s"), Packet(REFUSED, {"sentence": "no table"}), connected=[1, 2])
    assert registry.node_of(1) == 2
    with pytest.raises(UserError, match="two hospitals call themselves 'north'"):
        registry.enter(*introduced("north", b"key-n", 3), connected=[1, 2, 3])
    registry.enter(*introduced("north", b"key-n", 3), connected=[2, 3])
    assert registry.node_of(0) == 3


def test_a_node_without_a_known_key_cannot_take_a_name_that_is_unknown_anothers_or_taken():
    registry = SiteRegistry({0: "north", 1: "south"}, {"south": b"key-s"})
    registry.enter(*introduced("north", b""), connected=[1, 2])
    assert registry.node_of(0) == 1
    with pytest.raises(UserError, match="calls itself 'west': expected one of the study's sites, north, south"):
        registry.enter(*introduced("west", b"", 2), connected=[1, 2])
    with pytest.raises(UserError, match="does not hold that site's key"):
        registry.enter(*introduced("south", b"key-n", 2), connected=[1, 2])
    with pytest.raises(UserError, match="two hospitals call themselves 'north'"):
        registry.enter(*introduced("north", b"", 2), connected=[1, 2])
    with pytest.raises(UserError, match="no table"):
        registry.enter(Connection(2, "now", b""), Packet(REFUSED, {"sentence": "no table"}), connected=[1, 2])


def test_a_packet_survives_both_ways():
    packet = Packet("kind", {"list": [1, None]}, tensors(), "a-1")
    for back in (Packet.from_bytes(packet.to_bytes()), from_records(to_records(packet))):
        assert (back.kind, back.about, back.number) == ("kind", {"list": [1, None]}, "a-1")
        assert list(back.tensors) == list(packet.tensors)
        assert all(np.array_equal(back.tensors[name], value) for name, value in packet.tensors.items())


def test_bytes_that_are_no_packet_are_refused():
    with pytest.raises(BrokenPacketError, match="found 3 bytes"):
        Packet.from_bytes(b"abc")


class SiteClient:
    def __init__(self, size):
        self.reply = Packet("reply", {}, {"weights": np.zeros(size, np.float32)})

    def of_coordinator(self, question):
        return self.reply

    def addends(self, asked):
        return self.reply


@pytest.mark.parametrize(("size", "travel"), [(0, 0), (2_500_000, 100)])
def test_a_large_reply_has_the_time_that_it_takes_on_a_slow_line(size, travel):
    now = [0.0]
    outward = Outward(SiteClient(size), 2, lambda packet: None, lambda: now[0])
    now[0] = 50.0
    outward(Packet(NEXT))
    now[0] = 50.0 + QUIET_S + travel
    assert not outward.quiet
    now[0] += 1
    assert outward.quiet
    now[0] = 50.0 + SILENCE_S + travel
    assert not outward.silent
    now[0] += 1
    assert outward.silent
    outward.connected()
    assert not outward.silent


def test_a_question_of_a_secure_sum_is_heard():
    now = [0.0]
    outward = Outward(SiteClient(1), 2, lambda packet: None, lambda: now[0])
    now[0] = SILENCE_S
    outward(Packet("secure-unmask", {"session": "a"}))
    now[0] += SILENCE_S
    assert not outward.silent


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's signal at a parent's end is Linux's")
def test_no_process_outlives_a_killed_parent(tmp_path):
    program = (
        "import os, sys, time; from pathlib import Path; from brainfed.sites.flower import start;"
        "child = start('child', ['sleep', '3600'], os.environ, Path(sys.argv[1]));"
        "print(child.process.pid, flush=True); time.sleep(3600)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "log")]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    cmdline = Path(f"/proc/{child}/cmdline")
    until_true(lambda: cmdline.read_bytes().startswith(b"sleep"))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    until_true(lambda: not cmdline.exists() or cmdline.read_bytes() == b"")
