"""How long a site waits for a question of the coordinator before it connects anew."""

import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from brainfed.deployment.flower.outward import QUIET_S, SILENCE_S, Outward
from brainfed.federation.apart.exchange import NEXT
from brainfed.federation.apart.packet import Packet


class Desk:
    def __init__(self, size):
        self.reply = Packet("reply", {}, {"weights": np.zeros(size, np.float32)})

    def of_coordinator(self, question):
        return self.reply

    def addends(self, asked):
        return self.reply


@pytest.mark.parametrize(("size", "travel"), [(0, 0), (2_500_000, 100)])
def test_a_large_reply_has_the_time_that_it_takes_on_a_slow_line(size, travel):
    now = [0.0]
    outward = Outward(Desk(size), 2, lambda packet: None, lambda: now[0])
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
    outward = Outward(Desk(1), 2, lambda packet: None, lambda: now[0])
    now[0] = SILENCE_S
    outward(Packet("secure-unmask", {"session": "a"}))
    now[0] += SILENCE_S
    assert not outward.silent
