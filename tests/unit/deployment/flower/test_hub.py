"""The coordinator's end of Flower: which replies end a wait, and whose reply cannot be read."""

import time

import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import Error
from flwr.common.constant import ErrorCode

from brainfed.deployment.flower import hub
from brainfed.deployment.flower.signature import Signer
from brainfed.federation.apart.exchange import ABSENT, NOBODY
from brainfed.federation.apart.packet import Packet
from brainfed.federation.apart.site_error import SiteError
from support.sites.fake_grid import NAMES, Grid, echo, message


@pytest.fixture
def asked(monkeypatch):
    """Replies of sites, by name, to one question; they have ten seconds."""
    monkeypatch.setattr(hub, "Message", message)

    def ask(answer):
        study = hub.Hub(Grid(answer), NAMES, {}, Signer(ec.generate_private_key(ec.SECP256R1())))
        return {NAMES[code]: reply for code, reply in study.ask({code: Packet("go") for code in NAMES}, 10.0).items()}

    return ask


def test_a_site_that_has_another_request_now_ends_the_wait(asked):
    """Its job was started again in the middle of a secure sum: nothing is gained by asking the same once more."""
    begin = time.monotonic()
    replies = asked(lambda name, packet: Packet(ABSENT) if name == "south" else echo(name, packet))
    assert {name: reply.kind for name, reply in replies.items()} == {"north": "reply", "south": ABSENT, "east": "reply"}
    assert time.monotonic() - begin < 5


def test_a_site_whose_desk_is_not_open_yet_is_asked_again(asked):
    tries = []

    def answer(name, packet):
        tries.append(name)
        return Packet(NOBODY) if tries.count("south") == 1 and name == "south" else echo(name, packet)

    assert {reply.kind for reply in asked(answer).values()} == {"reply"}
    assert sorted(tries) == ["east", "north", "south", "south"]


@pytest.mark.parametrize(
    ("code", "reason"), [(ErrorCode.NODE_UNAVAILABLE, "its connection was lost"), (ErrorCode.UNKNOWN, "no disk")]
)
def test_a_message_that_did_not_arrive_is_sent_again_and_the_reason_said(asked, caplog, code, reason):
    tries = []

    def answer(name, packet):
        tries.append(name)
        return Error(code, "no disk") if tries.count("south") == 1 and name == "south" else echo(name, packet)

    with caplog.at_level("WARNING"):
        assert {reply.kind for reply in asked(answer).values()} == {"reply"}
    (line,) = [each.getMessage() for each in caplog.records]
    assert line == f"site south did not get a message, which is sent again: {reason}"


@pytest.mark.parametrize("broken", [b"", b"nonsense", Packet("refused"), Packet("refused", {"sentence": 3})])
def test_a_reply_that_cannot_be_read_names_its_site(asked, broken):
    with pytest.raises(SiteError, match=r"site 'south': expected a .* found") as raised:
        asked(lambda name, packet: broken if name == "south" else echo(name, packet))
    assert raised.value.code == 1
