"""The ledger of everything that leaves an institution.

A tensor may cross only under a name that the method declared, with the axes that it declared, and
never with an axis as long as the institution has subjects unless that axis is declared `subjects`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Direction = Literal["upload", "download"]
DIRECTIONS: tuple[Direction, ...] = ("download", "upload")


class UndeclaredCrossing(RuntimeError):  # noqa: N818
    """A tensor tried to leave an institution without having been declared."""


@dataclass
class Ledger:
    """Counts tensors and bytes by name and direction, of the training of one fold.

    A real federation trains once; the other folds are copies of it for the sake of the test.

    Attributes:
        declared: name -> names of the tensor's axes.
        axes: sizes of the axes that are known, for example `{"features": 7381, "hidden": 64}`.
    """

    declared: Mapping[str, tuple[str, ...]]
    axes: Mapping[str, int] = field(default_factory=dict)
    _rows: dict[tuple[str, str], dict[str, int | str]] = field(default_factory=dict)

    def record(
        self,
        name: str,
        shape: Sequence[int],
        itemsize: int,
        *,
        direction: Direction,
        round_index: int,
        subjects: int,
        times: int = 1,
    ) -> None:
        """Count `times` tensors of `shape`, sent in `round_index` by (or to) institutions of `subjects` people.

        Raises:
            UndeclaredCrossing: the name is not declared, the axes differ, or one looks like people.
        """
        axes = self._declared_axes(name)
        if len(axes) != len(shape):
            raise UndeclaredCrossing(f"{name}: declared with the axes {axes}, found the shape {tuple(shape)}")
        for axis, size in zip(axes, shape, strict=True):
            known = self.axes.get(axis)
            if known is not None and known != size:
                raise UndeclaredCrossing(f"{name}: axis {axis} has {known} entries, found {size}")
            if known is None and size == subjects and axis != "subjects":
                raise UndeclaredCrossing(f"{name}: axis {axis} of {size} entries is as long as the institution's list")
        size = itemsize
        for length in shape:
            size *= length
        row = self._rows.setdefault(
            (name, direction),
            {
                "name": name,
                "direction": direction,
                "axes": " x ".join(axes),
                "shape": "x".join(str(length) for length in shape),
                "tensors": 0,
                "rounds": 0,
                "bytes": 0,
            },
        )
        row["tensors"] = int(row["tensors"]) + times
        row["rounds"] = max(int(row["rounds"]), round_index + 1)
        row["bytes"] = int(row["bytes"]) + times * size

    def rows(self) -> tuple[dict[str, int | str], ...]:
        """One row for each kind of tensor that crossed."""
        return tuple(self._rows[key] for key in sorted(self._rows))

    def restore(self, rows: Iterable[Mapping[str, int | str]]) -> None:
        """Take up the count of an interrupted run."""
        self._rows = {(str(row["name"]), str(row["direction"])): dict(row) for row in rows}

    def _declared_axes(self, name: str) -> tuple[str, ...]:
        for declared, axes in self.declared.items():
            if declared == name:
                return axes
        raise UndeclaredCrossing(f"{name} may not leave an institution: declared are {_listing(self.declared)}")


def _listing(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
