"""What the coordinator reaches at a site: parts of secure sums, and the desk; and since when it is silent."""

import time
from collections.abc import Callable
from pathlib import Path

from brainfed.deployment.desk import Desk
from brainfed.deployment.flower.hub import SLOWEST
from brainfed.deployment.flower.secure.site import Summand
from brainfed.deployment.flower.secure.unmasked import Unmasked
from brainfed.federation.apart.exchange import ABSENT
from brainfed.federation.apart.packet import Packet
from brainfed.federation.apart.sealed import SEALED

SILENCE_S = 60.0
"""Without a question of the coordinator, which has one at least every quarter of a minute."""


class Outward:
    """Answers the coordinator.

    Args:
        desk: of the site.
        fewest: sites whose sum this site helps to unmask.
        clock: seconds.
        unmasked: file of the sums that this site has helped to unmask; None: they are kept in memory.

    Raises:
        UserError: the file cannot be read.
    """

    def __init__(
        self,
        desk: Desk,
        fewest: int,
        clock: Callable[[], float] = time.monotonic,
        unmasked: Path | None = None,
    ) -> None:
        self._desk, self._clock = desk, clock
        self._answer = Summand(self._addends, self._of_coordinator, fewest, Unmasked(unmasked))
        self._sealed: Packet | None = None
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

    def _of_coordinator(self, question: Packet) -> Packet:
        reply = self._desk.of_coordinator(question)
        if SEALED in reply.about:
            self._sealed = reply
        return reply

    def _addends(self, asked: Packet) -> Packet:
        """The numbers of a request that the coordinator was given sealed, with the words that it was given."""
        sealed, named = self._sealed, asked.about.get("request")
        if sealed is None or sealed.about["request"] != named:
            return Packet(ABSENT, {"sentence": "the coordinator was given another request"})
        found = self._desk.addends(asked)
        return found if found.kind == ABSENT else Packet(found.kind, sealed.about, found.tensors)
