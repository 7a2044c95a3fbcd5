"""Data that cross institutions before any method: the search for odd scans and twins compares all subjects.

Acquisition sites stand for institutions, which are drawn or named later and may divide a site.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from brainfed.federation.ledger import Ledger
from brainfed.federation.sharing import Content, columns, record_pool

CROSSES: Mapping[str, tuple[str, ...]] = {"connectivity": ("subjects", "connections"), "checksum": ("subjects",)}
FLOAT32 = 4


def crossings_of_likeness(
    participants: pd.DataFrame, subjects: Sequence[str], regions: int
) -> tuple[dict[str, int | str], ...]:
    """Rows of the ledger for the connectivity of `subjects`, which `imaging.quality.typicality` compares.

    Args:
        participants: subject, site (null where unknown).
        subjects: those with a usable series.
        regions: number of regions of a series.
    """
    connections = regions * (regions - 1) // 2
    return _pooled(participants, subjects, {"connectivity": ((connections,), FLOAT32)}, {"connections": connections})


def crossings_of_checksums(participants: pd.DataFrame, subjects: Sequence[str]) -> tuple[dict[str, int | str], ...]:
    """Rows of the ledger for the checksums of `subjects`, by which identical scans are found; arguments as above."""
    return _pooled(participants, subjects, columns("checksum"), {})


def crossings_of_inclusion(measured: pd.DataFrame, source: str) -> tuple[dict[str, int | str], ...]:
    """Rows of the ledger for the search for identical scans.

    Args:
        measured: subject, site and checksum (empty without data).
        source: of the cohort. With `tudataset` none: the checksum of a graph covers its id, and no two are compared.
    """
    if source == "tudataset":
        return ()
    return crossings_of_checksums(measured, list(measured.loc[measured["checksum"].fillna("") != "", "subject"]))


def _pooled(
    participants: pd.DataFrame, subjects: Sequence[str], content: Content, axes: Mapping[str, int]
) -> tuple[dict[str, int | str], ...]:
    ledger = Ledger(CROSSES, axes, "cohort")
    site = participants.loc[participants["subject"].isin(subjects), "site"].fillna("").astype("str")
    record_pool(ledger, dict(enumerate(site.value_counts().sort_index().tolist())), content)
    return ledger.rows()
