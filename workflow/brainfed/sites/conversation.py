"""What the coordinator's ServerApp does: it greets the sites, compares them, and answers until all have left."""

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from logging import getLogger
from pathlib import Path
from typing import Any

from brainfed.runtime import UserError, write_text
from brainfed.sites._coordinator import Coordinator, KeptState
from brainfed.sites._packet import (
    HELD,
    INTRODUCE,
    LEAVE,
    NEXT,
    REFUSED,
    WORKING,
    DifferingSitesError,
    Hub,
    Packet,
    SiteError,
    require_introduction,
    require_request,
)
from brainfed.sites._site_client import started_of
from brainfed.sites.flower import SecureSums
from brainfed.sites.released import Stated, require_accepted
from brainfed.sites.study import OUTCOME, START, StudyPlace, check_introduction, introduction, study_digest

# The coordinator compares each site with the study, refuses one that differs alone, and waits until all are there.

GREETING_S = 10.0
"""For a site to introduce itself, or to hear that it is refused."""
SKEW_S = 60.0
"""Difference of clocks that is refused: Flower drops messages that seem to come from the past or the future."""
HERE_S = 60.0
"""After its last word, a site counts as gone."""
FRESH_S = 20.0
"""After its last word, a site is asked again."""
PAUSE_S = 1.0
"""Between two questions to sites that answer at once."""
AGAIN_S = 600.0
"""Between two lines that name the absent sites, if none comes or goes."""

logger = getLogger(__name__)


class Comparison:
    """Compares sites with the study; one that differs is refused alone, and compared again when it comes back.

    `expected` is the coordinator's `introduction`, with what the study's file states to release.
    """

    def __init__(self, hub: Hub, names: Mapping[int, str], expected: Mapping[str, Any]) -> None:
        self._hub, self._names, self._expected = hub, names, expected
        self._refused: dict[int, str] = {}

    def __call__(self, codes: Iterable[int]) -> set[int]:
        """Those of the sites that answered in time and would compute what the study does."""
        replies, sentences = self._heard(codes)
        sentences |= {code: self._mistake(code, reply) for code, reply in replies.items()}
        refusals = {code: Packet(REFUSED, {"sentence": sentence}) for code, sentence in sentences.items() if sentence}
        for code, refusal in refusals.items():
            # A site hears its refusal within seconds, and may be asked again before it has ended.
            said = replies[code].about if code in replies else {}
            start = str(said.get(START, refusal.about["sentence"]))
            if self._refused.get(code) != start:
                logger.warning("%s", refusal.about["sentence"])
            self._refused[code] = start
            # One that cannot be read does not answer its refusal either.
            with suppress(SiteError):
                self._hub.ask({code: refusal}, GREETING_S)
        return replies.keys() - refusals.keys()

    def _heard(self, codes: Iterable[int]) -> tuple[dict[int, Packet], dict[int, str]]:
        """Introductions of the sites that answered, and sentences on those whose answer cannot be read."""
        asked, broken = set(codes), dict[int, str]()
        while asked:
            try:
                return self._hub.ask({code: Packet(INTRODUCE) for code in sorted(asked)}, GREETING_S), broken
            except SiteError as error:
                broken[error.code] = str(error)
                asked.discard(error.code)
        return {}, broken

    def _mistake(self, code: int, reply: Packet) -> str:
        name = self._names[code]
        if reply.kind == REFUSED:
            return f"site {name!r}: {reply.about['sentence']}"
        try:
            require_introduction(code, reply, name)
            check_introduction(name, reply.about, self._expected)
            require_accepted(f"site {name!r}", self._expected["stated"], reply.about["released"])
        except UserError as error:
            return str(error)
        skew = float(reply.about["clock"]) - time.time()
        if not abs(skew) <= SKEW_S:
            return (
                f"site {name!r}: expected a clock within {SKEW_S:g} s of the coordinator's, found one that is "
                f"{abs(skew):.0f} s {'ahead' if skew > 0 else 'behind'}; set both by NTP."
            )
        return ""


def greet(
    compare: Callable[[Iterable[int]], Collection[int]],
    names: Mapping[int, str],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until all sites are there, however long that takes: nothing has begun, so nothing can be lost.

    Sites that are there are asked again meanwhile; one that hears nothing takes its connection for lost. `compare`
    gives those of the asked sites that answered and compute what the study does.
    """
    heard: dict[int, float] = {}
    here: set[int] = set()
    said = clock()
    while len(here) < len(names):
        asked = [code for code in names if code not in heard or clock() - heard[code] > FRESH_S]
        heard |= dict.fromkeys(compare(asked), clock())
        now = {code for code, moment in heard.items() if clock() - moment < HERE_S}
        absent = ", ".join(name for code, name in names.items() if code not in now)
        waits = f"waits for {absent}" if absent else "all sites are there"
        news = [f"site {names[code]} is there" for code in names if code in now - here]
        news += [f"site {names[code]} is gone" for code in names if code in here - now]
        if news:
            logger.info("%s; %s", ", ".join(news), waits)
        elif clock() - said > AGAIN_S:
            logger.info("%s: ask them to run `brainfed join`", waits)
        if news or clock() - said > AGAIN_S:
            said = clock()
        here = now
        if absent:
            sleep(PAUSE_S)
        else:
            # One of them may have been refused since it was heard.
            heard = dict.fromkeys(compare(list(names)), clock())
            here = set(heard)


# The coordinator's side of a study: it asks every site for its next request, and answers when all ask the same.

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
"""Seconds for a site to say that it has no request yet: longer than its client waits, shorter than a person."""
NAMED = 4
"""Sites that a line of the log names."""


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
        words = {code: {HELD: request.about["request"]} for code, request in self._requests.items()}
        questions = {code: Packet(NEXT, words.get(code, {})) for code in here}
        questions |= {code: answer for code, answer in self._answers.items() if code not in resting}
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
                logger.info("site %s has left; %s", self._coordinator.names[code], self._waited_for())
        if self._progress() != self._saved:
            self._save()

    def _answer(self) -> None:
        late = self._since is not None and self._clock() - self._since > self._wait
        answers = self._coordinator.answers(self._requests, late=late)
        self._requests = {code: packet for code, packet in self._requests.items() if code not in self._coordinator.lost}
        if not answers:
            return
        # A key is that of a job and the number of its request.
        keys = (str(self._requests[code].about.get("key", "")) for code in answers)
        jobs = sorted({key.rpartition("/")[0] for key in keys} - {""})
        for code, packet in answers.items():
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


def _steps(number: int) -> str:
    return f"{number} step{'' if number == 1 else 's'}"


# The whole study.

STATE = "coordinator"


def converse(hub: Hub, config: Mapping[str, Any]) -> None:
    """Run a study; its outcome is in the folder of Flower's files.

    Args:
        hub: to the sites.
        config: `folder`, of Flower's files; `study`, the path of the study's config; `place`, the working directory.

    Raises:
        UserError: sites are late in a step, or send what cannot be used.
    """
    folder = Path(str(config["folder"]))
    os.chdir(str(config["place"]))
    try:
        plan = StudyPlace.of(Path(str(config["study"]))).plan
        study, names = plan.project.study, dict(enumerate(plan.project.study.ordered))
        coordinator = Coordinator(names, study.least, SecureSums(hub, study.least))
        compare = Comparison(hub, names, introduction(plan, time.time(), stated=asdict(Stated.of(plan))))
        kept = KeptState(folder / STATE, study_digest(plan))
        conversation = Conversation(hub, coordinator, study.wait, kept, compare)
        greet(compare, {code: name for code, name in names.items() if code not in conversation.left})
        left = conversation.run()
    except UserError as error:
        write_text(folder / OUTCOME, json.dumps({"error": str(error)}) + "\n")
        raise
    scores = {names[code]: packet.about.get("scores", []) for code, packet in sorted(left.items())}
    write_text(folder / OUTCOME, json.dumps({"steps": coordinator.rounds, "scores": scores}, indent=1) + "\n")
