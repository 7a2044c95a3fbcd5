"""Tables of quality and coverage of subjects whose data are no scan: FreeSurfer's measures, public graphs."""

from collections.abc import Mapping, Sequence

import pandas as pd

COVERAGE = {"subject": "str", "region": "str", "coverage": "float64"}
"""Columns of a coverage table."""
UNKNOWN = ("timepoints", "volumes", "tr", "header_tr", "mean_fd", "tsnr")
"""Measures of time and signal."""


def quality_without_scan(
    subjects: Sequence[str], checksums: Mapping[str, str], problems: Mapping[str, str]
) -> pd.DataFrame:
    """One row a subject in the columns of region series; those of time and signal are empty.

    Args:
        subjects: ids, in order.
        checksums: subject -> checksum of its data; empty where there is none.
        problems: subject -> why its data cannot be used.
    """
    return pd.DataFrame(
        {
            "subject": list(subjects),
            **dict.fromkeys(UNKNOWN, float("nan")),
            "constant_regions": 0,
            "empty_regions": 0,
            "runs": 1,
            "checksum": [checksums.get(subject, "") for subject in subjects],
            "resampled": "",
            "suspicion": "",
            "problem": [problems.get(subject, "") for subject in subjects],
        }
    )


def coverage_without_scan() -> pd.DataFrame:
    """A coverage table without rows: nothing was covered."""
    return pd.DataFrame({name: [] for name in COVERAGE}).astype(COVERAGE)
