"""What a round costs the coordinator's SuperLink: contents that cross once, and looks for messages."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from cryptography.hazmat.primitives.asymmetric import ec

from brainfed.sites import Packet
from brainfed.sites._packet import ANSWER
from brainfed.sites.flower import _hub as hub
from brainfed.sites.flower import _messages as pauses
from brainfed.sites.flower._messages import Signer, addressed, to_contents
from support.sites.fake_grid import NAMES, Grid, message, received

MODEL = {"weights": np.arange(6, dtype=np.float32).reshape(1, 6)}


def test_one_answer_to_all_sites_is_one_content_with_each_sites_own_name_beside_it():
    answers = [Packet(ANSWER, {"round": 3, "to": f"{name}-7"}, dict(MODEL), "n-1") for name in NAMES.values()]
    contents = to_contents(answers)
    assert len({id(content) for content, _ in contents}) == 1
    for answer, (content, group) in zip(answers, contents, strict=True):
        found = addressed(Packet.from_bytes(content), message(None, 1, group))
        assert (found.kind, found.about, found.number) == (ANSWER, answer.about, "n-1")
        np.testing.assert_array_equal(found.tensors["weights"], MODEL["weights"])


@pytest.mark.parametrize(
    "other",
    [
        Packet(ANSWER, {"round": 4, "to": "b"}, MODEL),
        Packet(ANSWER, {"round": 3, "to": "b"}, {"weights": MODEL["weights"] + 1}),
        Packet(ANSWER, {"round": 3, "to": "b"}, {"bias": MODEL["weights"]}),
        Packet(ANSWER, {"round": 3}, {"weights": MODEL["weights"][:, :3]}),
    ],
)
def test_answers_that_differ_have_contents_of_their_own(other):
    first = Packet(ANSWER, {"round": 3, "to": "a"}, MODEL)
    (one, _), (two, group) = to_contents([first, other])
    assert one is not two
    assert group == other.about.get("to")
    assert Packet.from_bytes(two).about == {name: value for name, value in other.about.items() if name != "to"}


def test_a_question_without_a_name_stays_without():
    ((content, group),) = to_contents([Packet("next", {}, number="n-2")])
    assert addressed(Packet.from_bytes(content), message(None, 1, group)).about == {}


def test_the_coordinator_sends_a_model_to_the_superlink_once_for_all_sites(monkeypatch):
    monkeypatch.setattr(hub, "Message", message)
    grid = Grid()
    answers = {code: Packet(ANSWER, {"round": 3, "to": f"{name}-7"}, MODEL) for code, name in NAMES.items()}
    signer = Signer(ec.generate_private_key(ec.SECP256R1()))
    replies = hub.Hub(grid, NAMES, {}, signer).ask(answers, 5.0)
    assert {code: reply.about["asked"] for code, reply in replies.items()} == {
        code: {"round": 3, "to": f"{name}-7"} for code, name in NAMES.items()
    }
    models = [each for each in grid.sent if received(each).tensors]
    assert len(models) == 3
    assert len({each.content.object_id for each in models}) == 1


def test_a_message_has_the_time_that_packets_take_on_a_slow_line_and_through_one_superlink(monkeypatch):
    """A message that expires on its way is sent again, and again expires."""
    monkeypatch.setattr(hub, "Message", message)
    grid = Grid()
    model = {"weights": np.zeros(1_000_000, dtype=np.float32)}
    study = hub.Hub(grid, NAMES, {}, Signer(ec.generate_private_key(ec.SECP256R1())))
    study.ask({code: Packet("next") for code in NAMES}, 30.0)
    study.ask({code: Packet(ANSWER, {}, model) for code in NAMES}, 30.0)
    small, large = (each.metadata.ttl for each in (grid.sent[-4], grid.sent[-1]))
    assert small == pytest.approx(30 + 3 * 0.5, abs=1)
    assert large == pytest.approx(30 + 3 * 0.5 + 4e6 / 1e5, abs=1)


@pytest.fixture
def slept(monkeypatch):
    found = []
    monkeypatch.setattr(pauses, "time", SimpleNamespace(sleep=found.append))
    return found


def looks(clock, slept, wait):
    """Looks for a message that comes after so many seconds, and the seconds that it then lies there."""
    slept.clear()
    while sum(slept) < wait:
        clock.sleep(3.0)
    late = sum(slept) - wait
    clock.answered.set()
    clock.sleep(0.5)
    return len(slept), late


def test_a_message_that_comes_soon_is_found_soon(slept):
    clock = pauses.Pauses()
    for _ in range(3):
        assert looks(clock, slept, 0.2)[1] < 0.08


@pytest.mark.parametrize("wait", [1.0, 5.0, 20.0])
def test_a_long_wait_has_ten_looks_and_adds_a_sixth(slept, wait):
    clock = pauses.Pauses()
    looks(clock, slept, wait)
    number, late = looks(clock, slept, wait)
    assert number <= 11
    assert late < wait / 4


def test_after_a_long_wait_a_short_one_is_found_soon_again(slept):
    clock = pauses.Pauses()
    looks(clock, slept, 10.0)
    assert looks(clock, slept, 0.2)[1] < 1.2
    assert looks(clock, slept, 0.2)[1] < 0.3
    assert looks(clock, slept, 0.2)[1] < 0.1
