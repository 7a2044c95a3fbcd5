"""Four ways in which data cross without a round: a pool, a loan of subjects, means of groups, and help with a fit.

Each records its tensors in the ledger. Code that reads data of another institution calls one of them.
"""

from collections.abc import Mapping

from brainfed.federation.ledger import ENTRY_BYTES, Direction, Ledger

Content = Mapping[str, tuple[tuple[int, ...], int]]
"""Name -> shape and bytes of one entry."""


def columns(*names: str) -> dict[str, tuple[tuple[int, ...], int]]:
    """One entry a subject of each of these, for `record_pool`."""
    return {name: ((), ENTRY_BYTES[name]) for name in names}


def record_pool(ledger: Ledger, sizes: Mapping[int, int], content: Content) -> None:
    """Every institution sends what it knows of each subject to a centre, once.

    Args:
        ledger: takes the rows.
        sizes: institution -> number of subjects.
        content: of one subject.
    """
    for institution, subjects in sizes.items():
        for name, (shape, itemsize) in content.items():
            ledger.record(
                name,
                (subjects, *shape),
                itemsize,
                direction="upload",
                round_index=0,
                institution=institution,
                subjects=subjects,
                to="centre",
            )


def record_loan(ledger: Ledger, lent: Mapping[int, int], sizes: Mapping[int, int], content: Content) -> None:
    """Institutions receive subjects of others from a centre that holds everybody, once.

    Args:
        ledger: takes the rows.
        lent: institution -> number of subjects that it receives.
        sizes: institution -> number of its own.
        content: of one subject.
    """
    for institution, subjects in lent.items():
        for name, (shape, itemsize) in content.items():
            ledger.record(
                name,
                (subjects, *shape),
                itemsize,
                direction="download",
                round_index=0,
                institution=institution,
                subjects=sizes[institution],
            )


def record_summaries(ledger: Ledger, made: Mapping[int, int], sizes: Mapping[int, int], content: Content) -> None:
    """Every institution sends what stands for several of its subjects to every other, once.

    Args:
        ledger: takes the rows.
        made: institution -> how many it sends.
        sizes: institution -> number of subjects.
        content: of one.
    """
    for name, (shape, itemsize) in content.items():
        for institution, subjects in sizes.items():
            sent = made[institution] * (len(sizes) - 1)
            received = sum(made.values()) - made[institution]
            directions: tuple[tuple[Direction, int], ...] = (("upload", sent), ("download", received))
            for direction, times in directions:
                if times:
                    ledger.record(
                        name,
                        shape,
                        itemsize,
                        direction=direction,
                        round_index=0,
                        institution=institution,
                        subjects=subjects,
                        to="institutions",
                        times=times,
                    )


def record_help(ledger: Ledger, helpers: Mapping[int, int], helped: Mapping[int, int], content: Content) -> None:
    """Institutions that could fit something send it to those that could not, for lack of training subjects.

    Args:
        ledger: takes the rows.
        helpers: institution -> number of subjects.
        helped: the same.
        content: what each of the helpers sends.
    """
    for name, (shape, itemsize) in content.items():
        for institution, subjects in helpers.items() if helped else ():
            ledger.record(
                name,
                shape,
                itemsize,
                direction="upload",
                round_index=0,
                institution=institution,
                subjects=subjects,
                to="institutions",
                times=len(helped),
            )
        for institution, subjects in helped.items():
            ledger.record(
                name,
                shape,
                itemsize,
                direction="download",
                round_index=0,
                institution=institution,
                subjects=subjects,
                times=len(helpers),
            )
