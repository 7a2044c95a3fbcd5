"""The sums that a site has helped to unmask: of which numbers, and over which sites. They outlive its process."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from brainfed.runtime.errors import UserError


@dataclass(frozen=True)
class Step:
    """Numbers of a site that are added up.

    Attributes:
        key: of the job's request.
        round: from 0; None: the sum belongs to no round.
        fingerprint: of the numbers.
    """

    key: str
    round: int | None
    fingerprint: str

    def __str__(self) -> str:
        """For people."""
        return self.key if self.round is None else f"{self.key}, round {self.round + 1}"


class Unmasked:
    """A file with a line a step, in JSON; only its user can read it.

    Args:
        path: of the file, in a folder that exists; None: the steps are kept in memory.

    Raises:
        UserError: a line cannot be read.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._sites: dict[Step, frozenset[int]] = {}
        if path is not None and path.exists():
            self._read(path)

    def sites(self, step: Step) -> frozenset[int] | None:
        """Codes of the sites over which a step was unmasked; None: it was not."""
        return self._sites.get(step)

    def note(self, step: Step, sites: frozenset[int]) -> None:
        """Keep the sites of a step; they are on the disk when this returns."""
        if self._path is not None:
            line = json.dumps({**asdict(step), "sites": sorted(sites)}) + "\n"
            _append(self._path, line.encode())
        self._sites[step] = sites

    def _read(self, path: Path) -> None:
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            try:
                found = json.loads(line)
                step = Step(str(found["key"]), found["round"], str(found["fingerprint"]))
                self._sites[step] = frozenset(map(int, found["sites"]))
            except (ValueError, KeyError, TypeError):
                raise UserError(
                    f"{path}, line {number}: expected a sum that was unmasked (key, round, fingerprint, sites), found "
                    "something else; restore the file, or move it away and begin a new study."
                ) from None
        # The reply of a line that was cut off has not left the site.
        if whole < len(content):
            os.truncate(path, whole)


def _append(path: Path, line: bytes) -> None:
    """Add a line; a part of it that is left by a full disk is taken away."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        try:
            while line:
                line = line[file.write(line) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(size)
            raise
    if size == 0:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
