"""The coordinator: it waits until all institutions ask the same, and answers.

It needs no data, no networks and no code of a method. All that it keeps is in `index` and its steps, so that one
that was killed goes on; a request that comes a second time has the same answer.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from functools import partial
from logging import getLogger
from pathlib import Path
from typing import Any

from brainfed.runtime import ArrayFile, UserError, read_arrays, write_arrays, write_text
from brainfed.sites._packet import (
    ANSWER,
    LARGEST,
    LEAVE,
    OPEN,
    REPLY,
    SUM,
    TOTAL,
    LostSitesError,
    Packet,
    SiteError,
    arrays_digest,
    bounds_of,
    fingerprint,
    is_sum,
    usual,
)
from brainfed.sites._recipes import Recipe, added, typed
from brainfed.sites._sessions import Arrays, Part, Session, Steps, Total

# Agreement of the sites' requests: one step, one study, a state of each site's own, sums of one kind.

STATED = ("strategy", "settings", "tensors", "rounds")
"""What all institutions must state alike when they open a training."""
SAME_STUDY = "run the same study with the same version of brainfed at all sites."


def require_nobody_gone(requests: Mapping[int, Packet], gone: Collection[int], names: Mapping[int, str]) -> None:
    """Refuse a step if a site has already left: its results belong to another study.

    Raises:
        UserError: a site has left.
    """
    if gone:
        left = ", ".join(repr(names[code]) for code in sorted(gone))
        raise UserError(
            f"{next(iter(requests.values())).about['key']}: expected {left} in this step too, found that it has left; "
            "it had results of an earlier study. Move `results` away there and `federation/coordinator` here; begin "
            "anew."
        )


def require_one_key(requests: Mapping[int, Packet], names: Mapping[int, str]) -> None:
    """Sites ask one thing at a time, all the same.

    Raises:
        UserError: sites are at different steps.
    """
    asked = {code: (request.kind, request.about["key"]) for code, request in requests.items()}
    if len(set(asked.values())) > 1:
        stated = "; ".join(f"{names[code]!r} at {key} ({kind})" for code, (kind, key) in sorted(asked.items()))
        raise UserError(
            f"expected all sites at the same step, found {stated}; the sites' settings or versions differ, or one "
            "has results of an earlier study: begin anew there in an empty `results`."
        )


def require_stated(
    code: int,
    request: Packet,
    stated: Mapping[str, Any],
    name: str,
    by: str = "the study",
    error: type[SiteError] = SiteError,
) -> None:
    """A training is the same at a site as in the study that has begun, or `by` another site.

    Raises:
        SiteError: a site opens another training under the same key; `error` of this class.
    """
    for what in STATED:
        if request.about[what] != stated[what]:
            raise error(
                code,
                f"site {name!r}: expected the same {what} as {by}, found another for {request.about['key']}; "
                f"{SAME_STUDY}",
            )


def require_like_trainings(requests: Mapping[int, Packet], names: Mapping[int, str]) -> dict[str, Any]:
    """Sites that open a training together state the same of it; what they state, by the names `STATED`.

    Raises:
        SiteError: a site states something else (see `usual`).
    """
    every = {code: {name: request.about[name] for name in STATED} for code, request in requests.items()}
    lead, error = usual(every, len(names))
    for code, request in sorted(requests.items()):
        require_stated(code, request, every[lead], names[code], f"site {names[lead]!r}", error)
    return every[lead]


def require_state(code: int, request: Packet, session: Session, name: str) -> None:
    """A site that has trained goes on from its own state: what stays at home is in no message.

    Raises:
        SiteError: it begins at a round that it has trained, whose answer has long come.
    """
    if int(request.about["round"]) < session.replied[code] and not (session.over and session.publishes):
        raise SiteError(
            code,
            f"site {name!r}: expected its state after round {session.replied[code] + 1} of {request.about['key']}, "
            f"found that it begins at round {request.about['round'] + 1}; restore its `results` as they were, or begin "
            "a new study.",
        )


def require_like_tensors(requests: Mapping[int, Packet], names: Mapping[int, str]) -> None:
    """Open numbers of one step have the same names at all sites that send some, and samples of as many folds.

    Raises:
        SiteError: a site has others (see `usual`).
    """
    sent = {
        code: _described(request)
        for code, request in sorted(requests.items())
        if request.kind == TOTAL or request.tensors
    }
    if not sent:
        return
    lead, error = usual(sent, len(names))
    for code, description in sent.items():
        if description != sent[lead]:
            raise error(
                code,
                f"site {names[code]!r}: expected {sent[lead]} for {requests[code].about['key']} as of site "
                f"{names[lead]!r}, found {description}; {SAME_STUDY}",
            )


def require_like_sums(requests: Mapping[int, Packet], names: Mapping[int, str]) -> None:
    """Refuse masked sums whose names or types differ between sites, or that one site sends in the clear.

    Raises:
        SiteError: a site has others (see `usual`).
    """
    sums = {code: request.about.get(SUM) for code, request in requests.items()}
    lead, error = usual(sums, len(names))
    for code, request in requests.items():
        if sums[code] != sums[lead]:
            raise error(
                code,
                f"site {names[code]!r}: expected numbers to add up for {request.about['key']} as those of site "
                f"{names[lead]!r}, in names, types and `study.secure_sums`, found others; {SAME_STUDY}",
            )


def _described(request: Packet) -> str:
    folds = len(request.about.get("samples", []))
    return (", ".join(sorted(request.tensors)) or "no tensors") + (f" and samples of {folds} folds" if folds else "")


# Answers to the requests of all institutions.

SecureSums = Callable[[Mapping[int, Packet], Mapping[str, float], bool], tuple[Arrays, Collection[int]]]
"""(sealed requests, bound of each name, whether all are needed) -> sums, and whose numbers are in them.

It raises `LostSitesError` where too few sites are there.
"""

logger = getLogger(__name__)


class Coordinator:
    """Answers the requests of all institutions.

    Args:
        names: institution -> name.
        least: fewest institutions of a round, where the strategy can do without some.
        secure: adds up numbers that the coordinator must not see one by one.

    Attributes:
        steps: its trainings and sums.
        numbers: key -> largest number of all institutions.
        rounds: number of rounds and sums that have ended.
        lost: sites that went away in the last secure sum; they may ask something else by now.
    """

    def __init__(self, names: Mapping[int, str], least: int | None = None, secure: SecureSums | None = None) -> None:
        self.names, self.least = dict(names), len(names) if least is None else least
        self._secure = secure
        self.steps = Steps()
        self.numbers: dict[str, int] = {}
        self.rounds = 0
        self.lost: Collection[int] = ()
        self._gone: set[int] = set()

    def answers(self, requests: Mapping[int, Packet], *, late: bool = False) -> dict[int, Packet]:
        """Answers to those requests that can be answered now; the others wait.

        Args:
            requests: institution -> what it waits for.
            late: whether the time for the others has passed.

        Raises:
            UserError: institutions ask different things, or send what cannot be aggregated.
        """
        self.lost = ()
        answered = {code: packet for code, request in requests.items() if (packet := self._again(code, request))}
        waiting = {code: request for code, request in requests.items() if code not in answered}
        if not waiting or (answered and not late):
            return answered
        require_nobody_gone(waiting, self._gone, self.names)
        complete = len(waiting) == len(self.names)
        if not complete and not late:
            return answered
        require_one_key(waiting, self.names)
        require_like_sums(waiting, self.names)
        require_like_tensors(waiting, self.names)
        try:
            return answered | (self._together(waiting, late) if complete else self._without_some(waiting))
        except LostSitesError as error:
            self.lost = error.codes
            self._wait_for(error.codes, waiting, late)
            return answered

    def leave(self, code: int) -> None:
        """A site has done all that it does with others: no new step may come."""
        self._gone.add(code)

    def index(self) -> dict[str, Any]:
        """JSON values that name what `steps.changed` gave, and hold the rest."""
        return {"numbers": self.numbers, "rounds": self.rounds, **self.steps.index()}

    def load(self, index: Mapping[str, Any], part: Part) -> None:
        """Copy a state; arguments as of `Steps.load`."""
        self.numbers, self.rounds = dict(index["numbers"]), index["rounds"]
        self.steps.load(index, part)

    def _again(self, code: int, request: Packet) -> Packet | None:
        """The answer to a request that no other institution is needed for; None if it must wait."""
        key = request.about.get("key", "")
        if request.kind == LEAVE:
            return Packet(ANSWER)
        total = self.steps.total(key) if request.kind == TOTAL else None
        if total is not None:
            if total.given[str(code)] != fingerprint(request):
                raise SiteError(
                    code,
                    f"site {self.names[code]!r}: expected the numbers that it gave before to {key}, found others; its "
                    "data, settings or number of cores have changed since the study began: restore them, or begin "
                    "anew.",
                )
            return Packet(ANSWER, {}, total.arrays)
        if request.kind == LARGEST and key in self.numbers:
            return Packet(ANSWER, {"number": self.numbers[key]})
        session = self.steps.session(key) if request.kind in (OPEN, REPLY) else None
        if session is None:
            return None
        if code not in session.institutions:
            raise UserError(
                f"site {self.names[code]!r}: expected it from the start of the training; it began without it."
            )
        if request.kind == OPEN:
            require_stated(code, request, session.recipe.stated(session.rounds), self.names[code])
            require_state(code, request, session, self.names[code])
            return session.answer(code, int(request.about["round"]))
        if session.over or int(request.about["round"]) < session.number:
            return session.answer(code, -1)
        return None

    def _together(self, requests: Mapping[int, Packet], late: bool) -> dict[int, Packet]:
        first = next(iter(requests.values()))
        key = first.about["key"]
        if first.kind == REPLY:
            session = self.steps.session(key)
            if session is None:
                raise UserError(
                    f"{key}: expected the state of a training that has begun, found none; restore "
                    "`federation/coordinator`, or begin a new study at all sites."
                )
            return self._end_round(key, session, requests, late)
        if first.kind == OPEN:
            answers = self._open(key, requests)
        elif first.kind == LARGEST:
            self.numbers[key] = max(int(request.about["number"]) for request in requests.values())
            answers = dict.fromkeys(requests, Packet(ANSWER, {"number": self.numbers[key]}))
        else:
            if is_sum(first):
                sums = typed(self._add_up(requests, needs_all=True)[0], first.about[SUM])
            else:
                sums = added(requests, self.names)
            given = {str(code): fingerprint(request) for code, request in requests.items()}
            self.steps.keep(key, Total(given, sums))
            answers = dict.fromkeys(requests, Packet(ANSWER, {}, sums))
        self.rounds += 1
        return answers

    def _add_up(self, sealed: Mapping[int, Packet], *, needs_all: bool) -> tuple[Arrays, Collection[int]]:
        if self._secure is None:
            raise UserError("expected open numbers, found numbers to be added up unseen; set `secure_sums: true`.")
        if len(sealed) < self.least:
            senders = ", ".join(repr(self.names[code]) for code in sorted(sealed))
            key = next(iter(sealed.values())).about["key"]
            raise UserError(
                f"{key}: expected numbers of at least {self.least} sites to add up unseen, found those of {senders}; "
                "start the coordinator again when the others are back, it goes on from here."
            )
        return self._secure(sealed, bounds_of(sealed, self.names), needs_all)

    def _open(self, key: str, requests: Mapping[int, Packet]) -> dict[int, Packet]:
        stated = require_like_trainings(requests, self.names)
        lead = min(requests)
        tensors = requests[lead].tensors
        if arrays_digest(tensors) != stated["tensors"]:
            raise SiteError(
                lead, f"site {self.names[lead]!r}: expected the initial tensors that it states, found others."
            )
        recipe = Recipe(stated["strategy"], stated["settings"], tensors)
        session = Session(recipe, tuple(sorted(requests)), int(stated["rounds"]))
        self.steps.keep(key, session)
        return {code: session.answer(code, int(request.about["round"])) for code, request in requests.items()}

    def _end_round(self, key: str, session: Session, requests: Mapping[int, Packet], late: bool) -> dict[int, Packet]:
        """Aggregate; until it is late, a site that is lost in a secure sum is waited for, as one without a reply."""
        session.aggregate(requests, self.names, partial(self._add_up, needs_all=session.needs_all or not late))
        self.steps.keep(key, session)
        self.rounds += 1
        return {code: session.answer(code, -1) for code in requests}

    def _without_some(self, requests: Mapping[int, Packet]) -> dict[int, Packet]:
        """End a round without the institutions that are late, where the strategy allows it.

        Raises:
            UserError: all are needed, or too few have answered.
        """
        first = next(iter(requests.values()))
        key, session = first.about["key"], self._sparing(first)
        absent = ", ".join(repr(name) for code, name in self.names.items() if code not in requests)
        if session is None:
            raise UserError(
                f"{key}: expected every site, as this step adds up numbers of all, found none of {absent} in time; "
                "start the coordinator again when they are back, it goes on from here."
            )
        if len(requests) < self.least:
            raise UserError(
                f"{key}, round {session.number + 1}: expected at least {self.least} sites in time, found "
                f"{len(requests)} (none of {absent}); start the coordinator again when they are back, it goes on from "
                "here."
            )
        return self._end_round(key, session, requests, late=True)

    def _sparing(self, first: Packet) -> Session | None:
        """The training whose round can do without some institutions; None: this step needs all."""
        session = self.steps.session(first.about["key"]) if first.kind == REPLY else None
        return None if session is None or session.needs_all else session

    def _wait_for(self, lost: Collection[int], waiting: Mapping[int, Packet], late: bool) -> None:
        """Let the sites come back that were lost in a secure sum, until it is late."""
        first = next(iter(waiting.values()))
        key = first.about["key"]
        if late:
            needed = "every site" if self._sparing(first) is None else f"at least {self.least} sites"
            absent = {code for code in self.names if code not in waiting}
            names = ", ".join(repr(self.names[code]) for code in sorted({*lost, *absent}))
            raise UserError(
                f"{key}: expected numbers of {needed} to add up unseen, found none of {names}; start the coordinator "
                "again when they are back, it goes on from here."
            )
        names = ", ".join(repr(self.names[code]) for code in sorted(lost))
        logger.warning("%s: %s went away while numbers were added up, tries again", key, names)


# The coordinator's state on the disk: a file a training or sum, rewritten when it has changed, and an index.
#
# Trainings and sums that are over leave the coordinator's memory once they are here.
#
# The index is written last. A file that is newer than the index does no harm: no site had the answer yet, and each asks
# again.

INDEX = "index.json"


class KeptState:
    """The folder of the state of a study, which its digest names."""

    def __init__(self, folder: Path, study: str) -> None:
        self._folder, self._study = folder, study

    def save(self, coordinator: Coordinator, left: Mapping[int, Packet]) -> None:
        """Write what has changed since the last save, and the last words of the sites that have left."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for key, (about, arrays) in coordinator.steps.changed().items():
            write_arrays(self._part(key), arrays, about)
        words = {str(code): dict(packet.about) for code, packet in left.items()}
        index = {"study": self._study, "coordinator": coordinator.index(), "left": words}
        write_text(self._folder / INDEX, json.dumps(index) + "\n")
        coordinator.steps.put_away(self._read)

    def load(self, coordinator: Coordinator) -> dict[int, Packet]:
        """Give the coordinator its state, if one is kept; the last words of the sites that have left.

        Raises:
            UserError: the state is that of another study.
        """
        path = self._folder / INDEX
        if not path.exists():
            return {}
        index = json.loads(path.read_text(encoding="utf-8"))
        if index["study"] != self._study:
            raise UserError(
                f"{path}: expected the state of this study, found that of another; move the folder away to begin "
                "anew, or restore the study."
            )
        coordinator.load(index["coordinator"], self._read)
        left = {int(code): Packet(LEAVE, words) for code, words in index["left"].items()}
        for code in left:
            coordinator.leave(code)
        return left

    def _read(self, key: str) -> ArrayFile:
        return read_arrays(self._part(key))

    def _part(self, key: str) -> Path:
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.safetensors"
