"""The coordinator's side of a study: it asks every site for its next request, and answers when all ask the same."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from logging import getLogger

from brainfed.deployment.desk import started_of
from brainfed.deployment.kept_state import KeptState
from brainfed.federation.apart.coordinator import Coordinator
from brainfed.federation.apart.exchange import HELD, LEAVE, NEXT, REFUSED, WORKING
from brainfed.federation.apart.form import require_request
from brainfed.federation.apart.hub import Hub
from brainfed.federation.apart.packet import Packet
from brainfed.federation.apart.site_error import DifferingSitesError, SiteError
from brainfed.runtime.errors import UserError

FAREWELLS = 2
"""Times that a leave is answered to a site that does not say that it heard it."""
ROLL_CALL_S = 15.0
"""Between two questions to sites that wait: a site that hears nothing connects anew, and one that was killed has asked
something else since."""
REST_S = 5.0
"""Before a site that made a mistake is asked again: one that cannot be read would hold up the others."""
IDLE_S = 0.2
"""Between two looks, while there is nobody to ask."""
REPLY_S = 30.0
"""Seconds for a site to say that it has no request yet: longer than its desk waits, shorter than a person."""
NAMED = 4
"""Sites that a line of the log names."""

logger = getLogger(__name__)


class Conversation:
    """A study from its first request to the leave of the last site.

    Args:
        hub: to the sites.
        coordinator: answers.
        wait: seconds that the first of several requests waits for the last.
        kept: the coordinator's state, from which a killed one goes on; None: nothing is kept.
        compare: called with the codes of sites that were started, before their requests are answered. It gives those
            that would compute the same, and has refused those that would not; the others are asked again.
        clock: seconds.
    """

    def __init__(
        self,
        hub: Hub,
        coordinator: Coordinator,
        wait: float,
        kept: KeptState | None,
        compare: Callable[[Sequence[int]], Collection[int]] = lambda codes: codes,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hub, self._coordinator, self._wait, self._clock = hub, coordinator, wait, clock
        self._kept = kept
        self._requests: dict[int, Packet] = {}
        self._answers: dict[int, Packet] = {}
        self._since: float | None = None
        self._called = clock()
        self.left = {} if kept is None else kept.load(coordinator)
        """Sites that have left, with their last words."""
        self._compare, self._compared = compare, dict[int, str]()
        self._leaving: dict[int, Packet] = {}
        self._farewells: Counter[int] = Counter()
        self._rests: dict[int, float] = {}
        self._mistakes: dict[int, tuple[str, str]] = {}
        self._saved = self._progress()
        if coordinator.rounds:
            logger.info("goes on after %s", _steps(coordinator.rounds))

    def run(self) -> dict[int, Packet]:
        """Answer until all sites have left; their last words by code.

        Raises:
            UserError: sites are late, or differ; what was reached is kept.
        """
        while len(self.left) < len(self._coordinator.names):
            try:
                self._listen()
                self._answer()
            except SiteError as error:
                self._refuse(error)
                if isinstance(error, DifferingSitesError):
                    raise
                self._take_for_absent(error)
        return self.left

    def _refuse(self, error: SiteError) -> None:
        """Give a site the sentence: as the answer to what it asks, or to all of it where that cannot be read."""
        refusal = Packet(REFUSED, {"sentence": str(error)})
        if error.code in self._requests:
            refusal = self._addressed(error.code, refusal)
        with suppress(SiteError):
            self._hub.ask({error.code: refusal}, REPLY_S)

    def _take_for_absent(self, error: SiteError) -> None:
        """A site made a mistake: its request is none, until it asks again."""
        request = self._requests.pop(error.code, None)
        self._rests[error.code] = self._clock() + REST_S
        if not self._requests:
            self._since = None
        mistake = (str(error), "" if request is None else started_of(request))
        if self._mistakes.get(error.code) != mistake:
            logger.warning("%s It counts as absent until `brainfed join` is started there again.", error)
        self._mistakes[error.code] = mistake

    def _listen(self) -> None:
        """Give the answers, and take the next requests of the sites that have none here; now and then of all."""
        now = self._clock()
        resting = {code for code, end in self._rests.items() if end > now}
        here = [code for code in self._coordinator.names if code not in self.left and code not in resting]
        if now - self._called > ROLL_CALL_S:
            self._called = now
        else:
            here = [code for code in here if code not in self._requests]
        held = {code: request.about["request"] for code, request in self._requests.items()}
        answers = {code: answer for code, answer in self._answers.items() if code not in resting}
        questions = {code: Packet(NEXT, {HELD: held[code]} if code in held else {}) for code in here} | answers
        if not questions:
            time.sleep(IDLE_S)
        replies = self._hub.ask(questions, min(REPLY_S, max(self._wait, 1.0))) if questions else {}
        self._say_farewell(replies)
        for code, reply in replies.items():
            self._answers.pop(code, None)
            if reply.kind == REFUSED:
                raise UserError(f"site {self._coordinator.names[code]!r}: {reply.about['sentence']}")
            if reply.kind != WORKING and code not in self.left:
                require_request(code, reply, self._coordinator.names[code])
                self._requests[code] = reply
        self._compare_new()
        if self._since is None and self._requests:
            self._since = self._clock()

    def _compare_new(self) -> None:
        """Compare the sites whose `brainfed join` was started since they were last compared."""
        started = {code: started_of(request) for code, request in self._requests.items()}
        new = {code: start for code, start in started.items() if self._compared.get(code) != start}
        if not new:
            return
        same = self._compare(sorted(new))
        self._compared |= {code: start for code, start in new.items() if code in same}
        self._requests = {code: request for code, request in self._requests.items() if code not in new or code in same}

    def _say_farewell(self, heard: Collection[int]) -> None:
        """Sites that have been answered their leave are gone: they may end before they say that they heard it."""
        for code in [code for code in self._leaving if code in self._answers]:
            self._farewells[code] += 1
            if code in heard or self._farewells[code] == FAREWELLS:
                self.left[code] = self._leaving.pop(code)
                self._answers.pop(code)
                name = self._coordinator.names[code]
                logger.info("site %s has left; %s", name, self._waited_for())
        if self._progress() != self._saved:
            self._save()

    def _answer(self) -> None:
        late = self._since is not None and self._clock() - self._since > self._wait
        found = self._coordinator.answers(self._requests, late=late)
        self._requests = {code: held for code, held in self._requests.items() if code not in self._coordinator.lost}
        if not found:
            return
        jobs = sorted({_job_of(self._requests[code]) for code in found} - {""})
        for code, packet in found.items():
            request = self._requests[code]
            self._answers[code] = self._addressed(code, packet)
            del self._requests[code]
            if request.kind == LEAVE:
                self._leaving[code] = request
                self._coordinator.leave(code)
        if not self._requests:
            self._since = None
        elif self._progress() != self._saved:
            self._since = self._clock()
        last = f", the last of {', '.join(jobs)}" if jobs else ""
        logger.info("%s%s; %s", _steps(self._coordinator.rounds), last, self._waited_for())
        if self._progress() != self._saved:
            self._save()

    def _progress(self) -> tuple[int, int]:
        """Steps and leaves so far; a site that asks again changes nothing."""
        return self._coordinator.rounds, len(self.left)

    def _addressed(self, code: int, packet: Packet) -> Packet:
        return Packet(packet.kind, {**packet.about, "to": self._requests[code].about["request"]}, packet.tensors)

    def _waited_for(self) -> str:
        names = [name for code, name in self._coordinator.names.items() if code not in self.left]
        more = [f"{len(names) - NAMED} others"] if len(names) > NAMED else []
        return f"waiting for {', '.join(names[:NAMED] + more)}" if names else "all sites have left"

    def _save(self) -> None:
        if self._kept is not None:
            self._kept.save(self._coordinator, self.left)
        self._saved = self._progress()


def _job_of(request: Packet) -> str:
    """Name of the sites' training that a request is from; empty: of none."""
    return str(request.about.get("key", "")).rpartition("/")[0]


def _steps(number: int) -> str:
    return f"{number} step{'' if number == 1 else 's'}"
