"""Table of the quality measures of every subject's scan."""

import pandas as pd

MEASURES = (
    "mean_fd", "volumes", "timepoints", "kept_share", "kept_seconds", "tr", "tsnr", "coverage", "unseen_regions",
    "barely_seen_regions", "silent_regions", "mean_fc", "typicality", "typicality_z",
)  # fmt: skip
"""Columns of numbers."""
OF_SCANS = ("timepoints", "volumes", "tr", "tsnr", "constant_regions", "empty_regions")
OF_CONNECTIVITY = ("mean_fc", "typicality", "typicality_z")


def measure(
    participants: pd.DataFrame,
    quality: pd.DataFrame,
    coverage: pd.DataFrame,
    min_coverage: float,
    connectivity: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Join the measures by subject.

    Args:
        participants: subject, mean_fd (mm), fd_source; one row a participant.
        quality: the quality tables of all parts; absent measures are unknown.
        coverage: subject, region, coverage (0 ... 1).
        min_coverage: fraction of a region below which it is barely seen.
        connectivity: as `imaging.quality.typicality` measures it; none if not measured.

    Returns:
        subject, fd_source (`table`: the phenotype table's mean FD, `scan`: measured, empty: unknown), `MEASURES`
        (float, NaN where unknown, as of an unusable series), alike (the first subject with nearly the same
        connectivity, or the subject itself). Subjects in ascending order.
    """
    subjects = participants[["subject", "mean_fd", "fd_source"]].sort_values("subject", ignore_index=True)
    scans = quality[quality["problem"] == ""].set_index("subject")
    scans = scans.reindex(index=subjects["subject"], columns=[*OF_SCANS, "mean_fd"]).astype("float64")
    scans.index = subjects.index
    table = pd.DataFrame({"subject": subjects["subject"], "mean_fd": subjects["mean_fd"].astype("float64")})
    measured = table["mean_fd"].isna() & scans["mean_fd"].notna()
    table["fd_source"] = subjects["fd_source"].mask(measured, "scan")
    table["mean_fd"] = table["mean_fd"].fillna(scans["mean_fd"])
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
    return table.astype(dict.fromkeys(MEASURES, "float64"))[["subject", "fd_source", *MEASURES, "alike"]]


def _covered(coverage: pd.DataFrame, min_coverage: float) -> pd.DataFrame:
    """subject, coverage (mean over regions), unseen_regions, barely_seen_regions."""
    seen = coverage.assign(unseen=coverage["coverage"] == 0, barely=coverage["coverage"] < min_coverage)
    found = seen.groupby("subject", as_index=False).agg(
        coverage=("coverage", "mean"), unseen_regions=("unseen", "sum"), barely_seen_regions=("barely", "sum")
    )
    return found.astype({"subject": "str"})
