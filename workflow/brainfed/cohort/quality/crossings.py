"""What crosses institutions before any method: the search for odd scans and for twins compares everybody.

Institutions are drawn or named later, so that acquisition sites stand for them; people of one site may yet be parted.
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
    """Rows of the ledger: connectivity of `subjects`, which `imaging.quality.typicality` compares between all of them.

    Args:
        participants: subject, site (null where unknown).
        subjects: those with a usable series.
        regions: of a series.
    """
    connections = regions * (regions - 1) // 2
    return _pooled(participants, subjects, {"connectivity": ((connections,), FLOAT32)}, {"connections": connections})


def crossings_of_checksums(participants: pd.DataFrame, subjects: Sequence[str]) -> tuple[dict[str, int | str], ...]:
    """Rows of the ledger: the checksums of `subjects`, by which identical scans are found; arguments as above."""
    return _pooled(participants, subjects, columns("checksum"), {})


def _pooled(
    participants: pd.DataFrame, subjects: Sequence[str], content: Content, axes: Mapping[str, int]
) -> tuple[dict[str, int | str], ...]:
    ledger = Ledger(CROSSES, axes, "cohort")
    site = participants.loc[participants["subject"].isin(subjects), "site"].fillna("").astype("str")
    record_pool(ledger, dict(enumerate(site.value_counts().sort_index().tolist())), content)
    return ledger.rows()
