"""The ledger of what leaves an institution, and all crossings outside rounds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal

from numpy.typing import NDArray

from brainfed.federation._link import Arrays, Link

# The ledger of all tensors that leave an institution.
#
# A tensor may cross only under a name and with axes that the stage declared. No axis may have as many entries as the
# institution has subjects, unless it is declared as one of `OF_SUBJECTS`.

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
        round_index: int,
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


# Crossings outside rounds: to a server and back, a pool, a loan of subjects, means of groups, help with a fit, sums.
#
# Each function records its tensors in the ledger. Code that reads data of another institution calls one of them.
# `add_up` is the only way to a sum over processes: it checks what is sent, and its caller records what each institution
# sends.

Content = Mapping[str, tuple[tuple[int, ...], int]]
"""Name -> shape and bytes of one entry."""

EVERY = -1
"""Code that stands for each institution: of a crossing in an artefact that all splits share, before they are known."""


def add_up(
    link: Link, ledger: Ledger, subjects: int, parts: Mapping[str, NDArray[Any]], *, stacked: bool = False
) -> Arrays:
    """Sums over all processes of the federation, by name; nothing leaves if one of the parts may not.

    A process that holds several institutions gives the sum of theirs, and the number of all their subjects. The ledger
    declares the parts, and counts nothing here. With `stacked` the first axis, of the folds, is not declared.

    Raises:
        UndeclaredCrossing: a part is not declared, has other axes, or has an undeclared axis as long as the subjects.
    """
    for name, part in parts.items():
        ledger.check(name, part.shape[1:] if stacked else part.shape, part.itemsize, subjects)
    return link.total(parts)


def columns(*names: str) -> dict[str, tuple[tuple[int, ...], int]]:
    """Content of one entry a subject for each name, for `record_pool`.

    Raises:
        UndeclaredCrossing: a name has no size of an entry in `ENTRY_BYTES`.
    """
    for name in names:
        if name not in ENTRY_BYTES:
            raise UndeclaredCrossing(
                f"{name}: expected one of {', '.join(ENTRY_BYTES)}; record others by `record_pool`"
            )
    return {name: ((), ENTRY_BYTES[name]) for name in names}


# In what follows `sizes` is institution -> number of its subjects, and `content` is what a single one of them sends.


def record_uploads(ledger: Ledger, sizes: Mapping[int, int], content: Content) -> None:
    """Record that every institution sends a server the same kind of tensors, once."""
    for institution, subjects in sizes.items():
        _record(ledger, content, "upload", institution, subjects)


def record_downloads(ledger: Ledger, sizes: Mapping[int, int], content: Content) -> None:
    """Record that a server sends every institution the same kind of tensors, once."""
    for institution, subjects in sizes.items():
        _record(ledger, content, "download", institution, subjects)


def record_pool(ledger: Ledger, sizes: Mapping[int, int], content: Content) -> None:
    """Record that every institution sends a centre the same tensors of each subject, `content`, once."""
    record_pools(ledger, sizes, {code: _of_subjects(subjects, content) for code, subjects in sizes.items()})


def record_pools(ledger: Ledger, sizes: Mapping[int, int], contents: Mapping[int, Content]) -> None:
    """Record that institutions send a centre tensors of their own sizes, once; contents by institution."""
    for institution, content in contents.items():
        _record(ledger, content, "upload", institution, sizes[institution], to="centre")


def record_loan(ledger: Ledger, lent: Mapping[int, int], sizes: Mapping[int, int], content: Content) -> None:
    """Record that a centre with all data lends institutions subjects, once; `lent` are their numbers."""
    for institution, subjects in lent.items():
        _record(ledger, _of_subjects(subjects, content), "download", institution, sizes[institution])


def record_summaries(ledger: Ledger, made: Mapping[int, int], sizes: Mapping[int, int], content: Content) -> None:
    """Record that every institution sends all others its summaries of several subjects, once.

    `made` is institution -> number of its summaries, and `content` is that of one summary.
    """
    for institution, subjects in sizes.items():
        sent, received = made[institution] * (len(sizes) - 1), sum(made.values()) - made[institution]
        _record(ledger, content, "upload", institution, subjects, to="institutions", times=sent)
        _record(ledger, content, "download", institution, subjects, to="institutions", times=received)


def record_help(ledger: Ledger, helpers: Mapping[int, int], helped: Mapping[int, int], content: Content) -> None:
    """Record that institutions with training subjects send those without the result of a fit; sizes of both kinds."""
    for institution, subjects in helpers.items():
        _record(ledger, content, "upload", institution, subjects, to="institutions", times=len(helped))
    for institution, subjects in helped.items():
        _record(ledger, content, "download", institution, subjects, times=len(helpers))


def of_institutions(
    rows: Iterable[Mapping[str, Any]], sizes: Mapping[int, int], *, apart: bool = False
) -> tuple[dict[str, int | str], ...]:
    """Rows of a ledger, those of `EVERY` institution recorded anew for each of a run's split.

    A single institution sends nothing, unless others are `apart`, outside this run.
    """
    split: list[dict[str, int | str]] = []
    for row in rows:
        if row["institutions"] != str(EVERY):
            split.append(dict(row))
        elif apart or len(sizes) > 1:
            split += _recorded_anew(row, sizes)
    return tuple(split)


def _recorded_anew(row: Mapping[str, Any], sizes: Mapping[int, int]) -> tuple[dict[str, int | str], ...]:
    axes = tuple(filter(None, row["axes"].split(" x ")))
    shape = tuple(int(length) for length in filter(None, row["shape"].split("x")))
    ledger = Ledger({row["name"]: axes}, dict(zip(axes, shape, strict=True)), row["stage"])
    content = {row["name"]: (shape, row["bytes"] // (row["tensors"] * prod(shape)))}
    for institution, subjects in sizes.items():
        _record(ledger, content, row["direction"], institution, subjects, row["to"], row["tensors"])
    return ledger.rows()


def _of_subjects(subjects: int, content: Content) -> Content:
    return {name: ((subjects, *shape), itemsize) for name, (shape, itemsize) in content.items()}


def _record(
    ledger: Ledger,
    content: Content,
    direction: Direction,
    institution: int,
    subjects: int,
    to: Receiver | None = None,
    times: int = 1,
) -> None:
    about: dict[str, Any] = {
        "direction": direction,
        "institution": institution,
        "subjects": subjects,
        "round_index": 0,
    }
    for name, (shape, itemsize) in content.items() if times else ():
        ledger.record(name, shape, itemsize, **about, to=to, times=times)
