"""Crossings outside rounds: to a server and back, a pool, a loan of subjects, means of groups, help with a fit, sums.

Each function records its tensors in the ledger. Code that reads data of another institution calls one of them.
`add_up` is the only way to a sum over processes: it checks what is sent, and its caller records what each institution
sends.
"""

from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

from numpy.typing import NDArray

from brainfed.federation.ledger import ENTRY_BYTES, Direction, Ledger, Receiver
from brainfed.federation.link import Arrays, Link

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
    """Content of one entry a subject for each name, for `record_pool`."""
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
    about: dict[str, Any] = {"direction": direction, "institution": institution, "subjects": subjects}
    for name, (shape, itemsize) in content.items() if times else ():
        ledger.record(name, shape, itemsize, **about, to=to, times=times)
