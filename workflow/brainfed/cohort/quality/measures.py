"""Quality measures of every subject, with or without a scan, and what their comparison lets cross."""

from collections.abc import Mapping, Sequence

import pandas as pd

from brainfed.federation.ledger import Ledger
from brainfed.federation.sharing import Content, columns, record_pool

# Tables of quality and coverage of subjects whose data are no scan: FreeSurfer's measures, public graphs.

COVERAGE = {"subject": "str", "region": "str", "coverage": "float64"}
"""Columns of a coverage table."""
UNKNOWN = ("timepoints", "volumes", "tr", "header_tr", "mean_fd", "tsnr")
"""Measures of time and signal."""


def quality_without_scan(
    subjects: Sequence[str], checksums: Mapping[str, str], problems: Mapping[str, str]
) -> pd.DataFrame:
    """One row a subject in the columns of region series; those of time and signal are empty.

    `checksums` are those of subjects with data, `problems` why data cannot be used.
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


MEASURES = (
    "mean_fd", "volumes", "timepoints", "kept_share", "kept_seconds", "tr", "tsnr", "coverage", "unseen_regions",
    "barely_seen_regions", "silent_regions", "mean_fc", "typicality", "typicality_z",
)  # fmt: skip
"""Columns of numbers."""
OF_SCANS = ("timepoints", "volumes", "tr", "tsnr", "constant_regions", "empty_regions")
OF_CONNECTIVITY = ("mean_fc", "typicality", "typicality_z")


def measure_scans(
    subjects: "pd.Series[str]",
    quality: pd.DataFrame,
    coverage: pd.DataFrame,
    min_coverage: float,
    connectivity: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """The measures of scans, joined by subject; nothing of the phenotype table has an effect.

    Args:
        subjects: of all participants.
        quality: the quality tables of all parts; absent measures are unknown.
        coverage: subject, region, coverage (0 ... 1).
        min_coverage: fraction of a region below which it is barely seen.
        connectivity: as `imaging.quality.typicality` measures it; none if not measured.

    Returns:
        subject, `MEASURES` (float, NaN where unknown, as of an unusable series) with the mean FD as the scan alone
        gives it, alike (the first subject with nearly the same connectivity, or the subject itself). Subjects in
        ascending order.
    """
    table = pd.DataFrame({"subject": subjects.sort_values(ignore_index=True)})
    scans = quality[quality["problem"] == ""].set_index("subject")
    scans = scans.reindex(index=table["subject"], columns=[*OF_SCANS, "mean_fd"]).astype("float64")
    scans.index = table.index
    table["mean_fd"] = scans["mean_fd"]
    table["volumes"] = scans["volumes"].fillna(scans["timepoints"])
    table["timepoints"], table["tr"], table["tsnr"] = scans["timepoints"], scans["tr"], scans["tsnr"]
    table["kept_share"] = table["timepoints"] / table["volumes"]
    table["kept_seconds"] = table["timepoints"] * table["tr"]
    # Data that are no series have no signal to lack.
    table["silent_regions"] = (scans["constant_regions"] + scans["empty_regions"]).where(scans["timepoints"].notna())
    table = table.merge(_covered(coverage, min_coverage), on="subject", how="left", validate="one_to_one")
    if connectivity is None:
        connectivity = pd.DataFrame(columns=["subject", *OF_CONNECTIVITY, "alike"])
    table = table.merge(connectivity, on="subject", how="left", validate="one_to_one")
    table["alike"] = table["alike"].fillna(table["subject"]).astype("str")
    return table.astype(dict.fromkeys(MEASURES, "float64"))[["subject", *MEASURES, "alike"]]


def with_motion(scans: pd.DataFrame, participants: pd.DataFrame) -> pd.DataFrame:
    """The measures of scans with the mean FD of the participants, and that of a scan where theirs is unknown.

    Args:
        scans: as of `measure_scans`.
        participants: subject, mean_fd (mm), fd_source; one row a participant.

    Returns:
        subject, fd_source (`table`: the phenotype table's mean FD, `scan`: measured, empty: unknown), `MEASURES`,
        alike.
    """
    known = participants[["subject", "mean_fd", "fd_source"]].set_index("subject").loc[scans["subject"]]
    own = known["mean_fd"].astype("float64").set_axis(scans.index)
    measured = own.isna() & scans["mean_fd"].notna()
    source = known["fd_source"].set_axis(scans.index).mask(measured, "scan")
    motion = own.fillna(scans["mean_fd"])
    return scans.assign(fd_source=source, mean_fd=motion)[["subject", "fd_source", *MEASURES, "alike"]]


def _covered(coverage: pd.DataFrame, min_coverage: float) -> pd.DataFrame:
    """subject, coverage (mean over regions), unseen_regions, barely_seen_regions."""
    seen = coverage.assign(unseen=coverage["coverage"] == 0, barely=coverage["coverage"] < min_coverage)
    covered = seen.groupby("subject", as_index=False).agg(
        coverage=("coverage", "mean"), unseen_regions=("unseen", "sum"), barely_seen_regions=("barely", "sum")
    )
    return covered.astype({"subject": "str"})


# Data that cross institutions before any method: the search for odd scans and duplicates compares all subjects.
#
# Acquisition sites stand for institutions, which are drawn or named later and may divide a site.

CROSSES: Mapping[str, tuple[str, ...]] = {"connectivity": ("subjects", "connections"), "checksum": ("subjects",)}
FLOAT32 = 4


def crossings_of_likeness(
    participants: pd.DataFrame, subjects: Sequence[str], regions: int
) -> tuple[dict[str, int | str], ...]:
    """Rows of the ledger for the connectivity of `subjects`, which `imaging.quality.typicality` compares.

    `participants` has subject and site (null where unknown); a series has this number of regions.
    """
    connections = regions * (regions - 1) // 2
    return _pooled(participants, subjects, {"connectivity": ((connections,), FLOAT32)}, {"connections": connections})


def crossings_of_inclusion(measured: pd.DataFrame, source: str) -> tuple[dict[str, int | str], ...]:
    """Rows of the ledger for the search for identical scans among subject, site and checksum (empty without data).

    None of source `tudataset`: the checksum of a graph covers its id, and no two are compared.
    """
    if source == "tudataset":
        return ()
    subjects = list(measured.loc[measured["checksum"].fillna("") != "", "subject"])
    return _pooled(measured, subjects, columns("checksum"), {})


def _pooled(
    participants: pd.DataFrame, subjects: Sequence[str], content: Content, axes: Mapping[str, int]
) -> tuple[dict[str, int | str], ...]:
    ledger = Ledger(CROSSES, axes, "cohort")
    site = participants.loc[participants["subject"].isin(subjects), "site"].fillna("").astype("str")
    record_pool(ledger, dict(enumerate(site.value_counts().sort_index().tolist())), content)
    return ledger.rows()
