"""The ledger of all tensors that leave an institution.

A tensor may cross only under a name and with axes that the stage declared. No axis may have as many entries as the
institution has subjects, unless it is declared as one of `OF_SUBJECTS`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Literal

Direction = Literal["upload", "download"]

Stage = Literal["cohort", "features", "graph", "inpainting", "classifier"]
STAGES: tuple[Stage, ...] = ("cohort", "features", "graph", "inpainting", "classifier")
"""In the order in which they run."""

Receiver = Literal["server", "centre", "institutions"]
"""`server` averages tensors, `centre` holds pooled data, `institutions` are others of the federation."""

ENTRY_BYTES: Mapping[str, int] = {"labels": 1, "sex": 1, "site": 2, "age": 8, "mean_fd": 8, "checksum": 32}
"""Bytes of one subject's entry on the wire: int8 codes, an int16 site, float64 measures, a SHA-256. Other tensors
have the size of their type in memory."""

OF_SUBJECTS = frozenset({"subjects", "nodes", "edges", "time-points"})
"""Axes that are as long as an institution's subjects, or as all of their graphs or series."""


class UndeclaredCrossing(RuntimeError):  # noqa: N818
    """An undeclared tensor tried to leave an institution."""


@dataclass
class Ledger:
    """Count tensors and bytes by name and direction in the training of one fold.

    A real federation trains once; further folds only serve the cross-validation.

    Attributes:
        declared: name -> names of the tensor's axes.
        axes: known sizes of axes, for example `{"features": 7381, "hidden": 64}`.
        stage: the sending stage of the pipeline.
    """

    declared: Mapping[str, tuple[str, ...]]
    axes: Mapping[str, int] = field(default_factory=dict)
    stage: Stage = "classifier"
    _rows: dict[tuple[str, str], dict[str, int | str]] = field(default_factory=dict)
    _rounds: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    _institutions: dict[tuple[str, str], set[int]] = field(default_factory=dict)

    def record(
        self,
        name: str,
        shape: Sequence[int],
        itemsize: int,
        *,
        direction: Direction,
        institution: int,
        subjects: int,
        round_index: int = 0,
        to: Receiver | None = None,
        times: int = 1,
    ) -> None:
        """Count `times` tensors of `shape`, sent in `round_index` by (or to) an institution of `subjects` subjects.

        Args:
            itemsize: bytes of one entry; as in `ENTRY_BYTES` for names that it has.
            direction: from the institution's side.
            to: the receiver; by default `server` for an upload, `institutions` for a download.

        Raises:
            UndeclaredCrossing: the name is not declared, the axes or the size of an entry differ, or an undeclared axis
                is as long as the list of subjects.
        """
        axes = self.check(name, shape, itemsize, subjects)
        key = (name, direction)
        row = self._rows.setdefault(
            key,
            {
                "stage": self.stage,
                "name": name,
                "direction": direction,
                "to": to or ("server" if direction == "upload" else "institutions"),
                "institutions": "",
                "axes": " x ".join(axes),
                "shape": "x".join(map(str, shape)),
                "tensors": 0,
                "rounds": 0,
                "bytes": 0,
            },
        )
        row["shape"] = _with_shape(str(row["shape"]), shape)
        known = self._institutions.setdefault(key, set())
        if institution not in known:
            known.add(institution)
            row["institutions"] = " ".join(map(str, sorted(known)))
        row["tensors"] = int(row["tensors"]) + times
        rounds = self._rounds.setdefault(key, set())
        rounds.add(round_index)
        row["rounds"] = len(rounds)
        row["bytes"] = int(row["bytes"]) + times * itemsize * prod(shape)

    def check(self, name: str, shape: Sequence[int], itemsize: int, subjects: int) -> tuple[str, ...]:
        """The declared axes of a tensor that may cross, without counting it; arguments and errors as of `record`."""
        if name not in self.declared:
            declared = ", ".join(sorted(self.declared)) or "none"
            raise UndeclaredCrossing(f"{name} may not leave an institution: declared are {declared}")
        axes = self.declared[name]
        if ENTRY_BYTES.get(name, itemsize) != itemsize:
            raise UndeclaredCrossing(f"{name}: an entry has {ENTRY_BYTES[name]} bytes everywhere, found {itemsize}")
        if len(axes) != len(shape):
            raise UndeclaredCrossing(f"{name}: declared with the axes {axes}, found the shape {tuple(shape)}")
        for axis, size in zip(axes, shape, strict=True):
            known = self.axes.get(axis)
            if known is not None and known != size:
                raise UndeclaredCrossing(f"{name}: axis {axis} has {known} entries, found {size}")
            if known is None and size == subjects and axis not in OF_SUBJECTS:
                raise UndeclaredCrossing(f"{name}: axis {axis} of {size} entries is as long as the institution's list")
        return axes

    def rows(self) -> tuple[dict[str, int | str], ...]:
        """One row for each kind of tensor that crossed.

        `institutions` lists the codes of its senders or receivers. `shape` is that of one tensor: `127x8`, or
        `98..127x8` where the tensors differ in an axis.
        """
        return tuple(self._rows[key] for key in sorted(self._rows))

    def blank(self) -> "Ledger":
        """An empty ledger with the same declarations."""
        return Ledger(self.declared, self.axes, self.stage)

    def restore(self, rows: Iterable[Mapping[str, int | str]]) -> None:
        """Load the rows of an interrupted run."""
        self._rows = {(str(row["name"]), str(row["direction"])): dict(row) for row in rows}
        self._rounds = {key: set(range(int(row["rounds"]))) for key, row in self._rows.items()}
        self._institutions = {key: set(map(int, str(row["institutions"]).split())) for key, row in self._rows.items()}


def _with_shape(known: str, shape: Sequence[int]) -> str:
    """`98x8` or `98..110x8` with (127, 8): `98..127x8`."""
    axes = []
    for lengths, length in zip(known.split("x") if known else (), shape, strict=True):
        seen = [*map(int, lengths.split("..")), length]
        axes.append(str(length) if min(seen) == max(seen) else f"{min(seen)}..{max(seen)}")
    return "x".join(axes)
