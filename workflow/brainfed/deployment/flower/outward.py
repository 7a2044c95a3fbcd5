"""What the coordinator reaches at a site: parts of secure sums, and the desk; and since when it is silent."""

import time
from collections.abc import Callable

from brainfed.deployment.desk import Desk
from brainfed.deployment.flower.hub import SLOWEST
from brainfed.deployment.flower.secure.site import Summand
from brainfed.federation.apart.packet import Packet

SILENCE_S = 60.0
"""Without a question of the coordinator, which has one at least every quarter of a minute."""


class Outward:
    """Answers the coordinator.

    Args:
        desk: of the site.
        fewest: sites whose sum this site helps to unmask.
        clock: seconds.
    """

    def __init__(self, desk: Desk, fewest: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._answer, self._clock = Summand(desk.addends, desk.of_coordinator, fewest), clock
        self.connected()

    def __call__(self, request: Packet) -> Packet:
        """The answer to a request."""
        self.connected()
        reply = self._answer(request)
        self._silent = self._clock() + SILENCE_S + reply.size / SLOWEST
        return reply

    def connected(self) -> None:
        """The coordinator is there now."""
        self._silent = self._clock() + SILENCE_S

    @property
    def silent(self) -> bool:
        """Whether nothing was heard for so long that the connection must be lost: a large reply takes its time."""
        return self._clock() > self._silent
