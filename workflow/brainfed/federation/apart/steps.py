"""The trainings and sums of a study at the coordinator, by key: in memory while they change, afterwards on the disk."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from brainfed.federation.apart.session import Arrays, Session
from brainfed.runtime.artefacts import ArrayFile

Part = Callable[[str], ArrayFile]
"""Key -> what `Steps.changed` gave."""


@dataclass(frozen=True)
class Total:
    """A sum that has ended.

    Attributes:
        given: site, as a word of a file -> fingerprint of its numbers.
        arrays: name -> sum.
    """

    given: Mapping[str, str]
    arrays: Arrays


class Steps:
    """All trainings and sums. Those that are over stay in memory until `put_away`; a late site has them read again."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._totals: dict[str, Total] = {}
        self._begun: set[str] = set()
        self._summed: set[str] = set()
        self._changed: set[str] = set()
        self._part: Part | None = None

    def session(self, key: str) -> Session | None:
        """A training that has begun."""
        if key in self._begun and key not in self._sessions:
            return self._read_session(key)
        return self._sessions.get(key)

    def total(self, key: str) -> Total | None:
        """A sum that has ended."""
        if key in self._summed and key not in self._totals:
            return self._read_total(key)
        return self._totals.get(key)

    def keep_session(self, key: str, session: Session) -> None:
        """Note a training that has begun or changed."""
        self._sessions[key] = session
        self._begun.add(key)
        self._changed.add(key)

    def keep_total(self, key: str, total: Total) -> None:
        """Note a sum that has ended."""
        self._totals[key] = total
        self._summed.add(key)
        self._changed.add(key)

    def changed(self) -> dict[str, tuple[dict[str, Any], Arrays]]:
        """Key -> JSON values and arrays of what has changed since the last call."""
        found: dict[str, tuple[dict[str, Any], Arrays]] = {}
        for key in sorted(self._changed):
            total = self._totals.get(key)
            found[key] = self._sessions[key].state() if total is None else (dict(total.given), total.arrays)
        self._changed.clear()
        return found

    def put_away(self, part: Part) -> None:
        """Let go of all that is over and has not changed since `changed`: it can be read."""
        self._part = part
        self._totals = {key: total for key, total in self._totals.items() if key in self._changed}
        self._sessions = {
            key: session for key, session in self._sessions.items() if key in self._changed or not session.over
        }

    def index(self) -> dict[str, list[str]]:
        """Keys of all trainings and sums, for `load`."""
        return {"sessions": sorted(self._begun), "totals": sorted(self._summed)}

    def load(self, index: Mapping[str, Any], part: Part) -> None:
        """Take what an earlier process kept. Each file is read, so that a damaged one is found now.

        Args:
            index: of `index`.
            part: reads what `changed` gave.
        """
        self._part = part
        self._begun, self._summed = set(index["sessions"]), set(index["totals"])
        for key in sorted(self._begun):
            session = self._read_session(key)
            if not session.over:
                self._sessions[key] = session
        for key in sorted(self._summed):
            self._read_total(key)

    def _read_session(self, key: str) -> Session:
        held = self._read(key)
        return Session.restored(held.metadata, held.arrays)

    def _read_total(self, key: str) -> Total:
        held = self._read(key)
        return Total(dict(held.metadata), dict(held.arrays))

    def _read(self, key: str) -> ArrayFile:
        assert self._part is not None
        return self._part(key)
