"""A site's client: it passes requests of the site's jobs to the coordinator, and the answers back to the jobs.

Jobs come one after the other, each a process that may be killed; the coordinator may be away. The client keeps what a
job waits for until it has an answer, and records all that leaves the site before it leaves. Numbers of which the
coordinator needs the sum alone stay here, for `sites.flower._secure_site` to mask.
"""

import csv
import json
import os
import secrets
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Condition, Lock
from typing import Any

from numpy.typing import NDArray

from brainfed.sites._packet import (
    ABSENT,
    ANSWER,
    FINGERPRINT,
    HELD,
    INTRODUCE,
    LEAVE,
    REFUSED,
    SUM,
    WORKING,
    Packet,
    is_sum,
    seal,
    shapes_and_bounds,
)
from brainfed.sites.study import START

PATIENCE = 10.0
"""Seconds that the coordinator's question waits here for a request."""


def started_of(request: Packet) -> str:
    """Name of the start of a site's client that a request is from."""
    return str(request.about["request"]).partition("-")[0]


class SiteClient:
    """Between the jobs of a site and the coordinator.

    Args:
        introduction: gives what the coordinator compares before it begins.
        leaving: called with every request before it can leave.
        key: a secret of the site, for fingerprints of numbers that stay here.
        patience: seconds that a question of the coordinator waits for a request.
    """

    def __init__(
        self,
        introduction: Callable[[], Mapping[str, Any]],
        leaving: Callable[[Packet], None],
        key: str,
        patience: float = PATIENCE,
    ) -> None:
        self._introduction, self._leaving, self._key, self._patience = introduction, leaving, key, patience
        self._changed = Condition()
        self._session, self._count = secrets.token_hex(4), 0
        self._request: Packet | None = None
        self._answers: dict[str, Packet] = {}
        self.refused = ""
        """The sentence with which the coordinator refused this site, or that it was stopped."""

    def of_job(self, request: Packet) -> Packet:
        """The answer to a job's request, however long it takes; a newer request of another job takes its place."""
        self._leaving(request)
        with self._changed:
            self._count += 1
            name = f"{self._session}-{self._count}"
            self._request = Packet(request.kind, {**request.about, "request": name}, request.tensors)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.refused or name in self._answers or self._named() not in (name, ""))
            if name in self._answers:
                return self._answers.pop(name)
            if self.refused:
                return Packet(REFUSED, {"sentence": self.refused})
        return Packet(REFUSED, {"sentence": f"{request.about.get('key', '')}: another job of this site has begun."})

    def of_coordinator(self, question: Packet) -> Packet:
        """The next request, or that there is none yet; an answer that comes along is given to its job."""
        if question.kind == INTRODUCE:
            return Packet(INTRODUCE, {**self._introduction(), START: self._session})
        with self._changed:
            if HELD in question.about and question.about[HELD] == self._named():
                return Packet(WORKING)
            if question.kind == REFUSED and "to" not in question.about:
                self.refused = str(question.about["sentence"])
                self._changed.notify_all()
                return Packet(WORKING)
            if question.kind in (ANSWER, REFUSED) and question.about.get("to") == self._named():
                about = {name: value for name, value in question.about.items() if name != "to"}
                self._answers[self._named()] = Packet(question.kind, about, question.tensors)
                left = self._request is not None and self._request.kind == LEAVE
                self._request = None
                self._changed.notify_all()
                if left:
                    return Packet(WORKING)
            self._changed.wait_for(lambda: self._request is not None, self._patience)
            if self._request is None:
                return Packet(WORKING)
            return seal(self._request, self._key) if is_sum(self._request) else self._request

    def addends(self, asked: Packet) -> Packet:
        """The numbers of the request that is named, to be masked before they leave; absent if another is under way."""
        with self._changed:
            request = self._request
            if request is None or not is_sum(request) or request.about["request"] != asked.about["request"]:
                return Packet(ABSENT, {"sentence": "the site has another request now"})
            return Packet(request.kind, {}, request.tensors)

    def close(self) -> None:
        """Refuse all requests from now on: this site is being stopped."""
        with self._changed:
            self.refused = self.refused or "this site was stopped; run `brainfed join` again, the job goes on"
            self._changed.notify_all()

    def _named(self) -> str:
        return "" if self._request is None else str(self._request.about["request"])


# The record of what leaves a site, written before it leaves: in a file, a line a tensor or value; on the terminal.
#
# Numbers of which the coordinator needs the sum alone leave masked, 8 bytes each, in every try to add them up. Their
# names, shapes, types and bounds leave open, with a fingerprint: the lines `bounds` and `fingerprint`. Rounds count
# from 1, here and in every sentence; in a request they count from 0.

COLUMNS = ("time", "job", "kind", "round", "name", "shape", "type", "bytes")
MASKED = "masked"
"""Type of numbers that are random to all who do not add up those of all sites."""
BYTES = 8
"""Of a masked number."""


class LeftSite:
    """Appends to a table at a path."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        path.parent.mkdir(parents=True, exist_ok=True)

    def __call__(self, request: Packet) -> None:
        """Note a request; the file is on the disk when this returns."""
        now, about = datetime.now(UTC).isoformat(timespec="seconds"), request.about
        lead = (now, about.get("key", ""), request.kind, _round(about))
        masked = is_sum(request)
        kinds = {name: MASKED if masked else array.dtype.name for name, array in request.tensors.items()}
        sizes = {name: BYTES * array.size if masked else array.nbytes for name, array in request.tensors.items()}
        rows = [(*lead, name, _shape(array), kinds[name], sizes[name]) for name, array in request.tensors.items()]
        words = {name: value for name, value in about.items() if name not in ("key", "round", SUM)}
        if masked:
            words |= {"bounds": [about[SUM], shapes_and_bounds(request)], "fingerprint": " " * FINGERPRINT}
        rows += [(*lead, name, "", "words", len(json.dumps(value))) for name, value in words.items()]
        with self._lock, self._path.open("a", newline="", encoding="utf-8") as file:
            table = csv.writer(file, delimiter="\t", lineterminator="\n")
            if file.tell() == 0:
                table.writerow(COLUMNS)
            table.writerows(rows)
            file.flush()
            os.fsync(file.fileno())
        if request.tensors:
            names = ", ".join(f"{name} {_shape(each)}" for name, each in request.tensors.items())
            when = f", round {_round(about)}" if "round" in about else ""
            how = "leaves this site masked" if masked else "leaves this site"
            print(f"{how} ({about.get('key', '')}{when}): {names}; {sum(sizes.values()):,} bytes", file=sys.stderr)


def _round(about: Mapping[str, Any]) -> int | str:
    return int(about["round"]) + 1 if "round" in about else ""


def _shape(array: NDArray[Any]) -> str:
    """`64x91`; `1` for a single number, which has no axis."""
    return "x".join(map(str, array.shape)) or "1"
