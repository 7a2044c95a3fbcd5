"""What the coordinator reaches at a site: parts of secure sums, and the desk; and since when it is silent.

The desk notes what jobs send. All else that says something of the site is noted here: introductions, refusals, the keys
and shares of secure sums, and numbers that are masked once more.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from brainfed.deployment.desk import Desk
from brainfed.deployment.flower.secure.site import STEPS, Summand
from brainfed.deployment.flower.secure.unmasked import Unmasked
from brainfed.federation.apart.exchange import ABSENT, INTRODUCE, REFUSED, SLOWEST
from brainfed.federation.apart.packet import Packet
from brainfed.federation.apart.sealed import SEALED
from brainfed.runtime.errors import UserError

NOTED = frozenset({INTRODUCE, *STEPS})
"""Kinds of replies that the desk does not note."""
SILENCE_S, QUIET_S = 60.0, 40.0
"""Without a question of the coordinator, which has one every half minute at the latest: the connection is lost, and the
person at the site should know."""


class Outward:
    """Answers the coordinator.

    Args:
        desk: of the site.
        fewest: sites whose sum this site helps to unmask.
        leaving: called with what leaves besides the requests of jobs, before it can leave.
        clock: seconds.
        unmasked: file of the sums that this site has helped to unmask; None: they are kept in memory.

    Raises:
        UserError: the file cannot be read.
    """

    def __init__(
        self,
        desk: Desk,
        fewest: int,
        leaving: Callable[[Packet], None],
        clock: Callable[[], float] = time.monotonic,
        unmasked: Path | None = None,
    ) -> None:
        self._desk, self._leaving, self._clock = desk, leaving, clock
        self._answer = Summand(self._addends, self._of_coordinator, fewest, Unmasked(unmasked))
        self._sealed: Packet | None = None
        self._tried = ""
        self._introduced: dict[str, Any] = {}
        self.connected()

    def __call__(self, request: Packet) -> Packet:
        """The answer to a request.

        Raises:
            UserError: the request is refused.
        """
        self.connected()
        try:
            reply = self._answer(request)
        except UserError as error:
            self._note(Packet(REFUSED, {"sentence": str(error)}))
            raise
        if reply.kind in NOTED and not self._is_known(reply):
            self._note(reply)
        self._heard = self._clock() + reply.size / SLOWEST
        return reply

    def connected(self) -> None:
        """The coordinator is there now."""
        self._heard = self._clock()

    @property
    def quiet(self) -> bool:
        """Whether a question is late."""
        return self._clock() > self._heard + QUIET_S

    @property
    def silent(self) -> bool:
        """Whether nothing was heard for so long that the connection must be lost: a large reply takes its time."""
        return self._clock() > self._heard + SILENCE_S

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
        if found.kind == ABSENT:
            return found
        if named == self._tried:
            said = {name: word for name, word in sealed.about.items() if name not in (SEALED, "request")}
            self._leaving(Packet(found.kind, said, found.tensors))
        self._tried = str(named)
        return Packet(found.kind, sealed.about, found.tensors)

    def _is_known(self, reply: Packet) -> bool:
        """Whether an introduction differs from the last one in the clock alone: it is asked for all the time."""
        if reply.kind != INTRODUCE:
            return False
        said = {name: word for name, word in reply.about.items() if name != "clock"}
        known, self._introduced = said == self._introduced, said
        return known

    def _note(self, reply: Packet) -> None:
        """Note the words of a reply; masked numbers are noted as those of a request."""
        step = {} if self._sealed is None or reply.kind not in STEPS else self._sealed.about
        job = {name: step[name] for name in ("key", "round") if name in step}
        self._leaving(Packet(reply.kind, {**reply.about, **job}))
