"""Inclusion of subjects: exclusion by the quality of their scans, and every other reason to leave."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from brainfed.cohort.settings import CohortSettings, ExclusionSettings
from brainfed.federation import Content, Ledger, columns, record_pool
from brainfed.runtime import UserError, read_table

UNLABELLED_COPY = "unlabelled copy of a labelled subject"
"""The reason to leave of a subject without a label."""
EXPECTED = "expected whole FreeSurfer measures"
"""Words of every exclusion for FreeSurfer measures."""


class Rule(NamedTuple):
    """One rule: its measure, whether its limit is the largest allowed value, and its words."""

    measure: str
    largest: bool
    words: str
    unit: str = ""
    factor: float = 1.0


RULES = {
    "min_volumes": Rule("timepoints", False, "kept volumes"),
    "min_kept_seconds": Rule("kept_seconds", False, "kept length", " s"),
    "min_kept_share": Rule("kept_share", False, "kept share of volumes", " %", 100),
    "mean_fd": Rule("mean_fd", True, "mean FD", " mm"),
    "min_coverage": Rule("coverage", False, "mean coverage of regions", " %", 100),
    "max_barely_seen_regions": Rule("barely_seen_regions", True, "barely seen regions"),
    "max_constant_regions": Rule("silent_regions", True, "number of regions without signal"),
    "min_tsnr": Rule("tsnr", False, "tSNR"),
}
"""Setting -> rule, in the order of the settings' fields."""

_KIND = re.compile(rf"(?:{'|'.join(rule.words for rule in RULES.values())}) (?:above|below) [^(]+")


def exclusion(measures: Mapping[Any, Any], settings: ExclusionSettings) -> str:
    """Reason to leave a subject out, such as `mean FD above 0.5 mm (0.73)`; empty if it stays.

    `measures` are one subject's row; NaN (unknown) excludes nobody.
    """
    for name, rule in active_rules(settings).items():
        limit, value = getattr(settings, name), measures[rule.measure]
        if not np.isnan(value) and (value > limit if rule.largest else value < limit):
            side = "above" if rule.largest else "below"
            return f"{rule.words} {side} {rule.factor * limit:g}{rule.unit} ({rule.factor * value:.3g})"
    return ""


def active_rules(settings: ExclusionSettings) -> dict[str, Rule]:
    """Rules that are set, in their order."""
    return {field.name: RULES[field.name] for field in fields(settings) if getattr(settings, field.name) is not None}


def exclusion_kind(reason: str) -> str:
    """Kind of a reason of `exclusion`, such as `mean FD above 0.5 mm`; empty for other reasons."""
    kind = reason.partition(" (")[0]
    return kind if _KIND.fullmatch(kind) else ""


# Decide which subjects are included, with a reason for each exclusion.
#
# Subjects with identical series or nearly identical connectivity are one person in two rows or a copying mistake.
# They form a group of duplicates, which no split may divide.

OF_SERIES = (
    "header_tr", "constant_regions", "empty_regions", "runs", "checksum", "resampled", "suspicion", "problem",
)  # fmt: skip


def join_quality(participants: pd.DataFrame, quality: pd.DataFrame, measures: pd.DataFrame) -> pd.DataFrame:
    """Participants (some columns of `ingest`) joined with the quality of their scans; one row a subject, ascending.

    `quality` holds the quality tables of all parts, `measures` those of `measure_scans` or `with_motion`.

    Raises:
        UserError: a subject with a series has no quality row.
    """
    people = participants.drop(columns=["mean_fd", "fd_source"], errors="ignore")
    if "labelled" not in people:
        people = people.assign(labelled=people["diagnosis"].notna())
    measured = people.merge(quality[["subject", *OF_SERIES]], on="subject", how="left", validate="one_to_one")
    measured = measured.merge(measures, on="subject", validate="one_to_one").sort_values("subject", ignore_index=True)
    unmeasured = measured.loc[measured["has_series"] & measured["problem"].isna(), "subject"]
    if len(unmeasured):
        raise UserError(
            f"Subject {unmeasured.iloc[0]}: expected a row in the quality tables, found none ({len(unmeasured)} such "
            "subjects); delete the time series and run again."
        )
    return measured


def include(measured: pd.DataFrame, settings: CohortSettings) -> pd.DataFrame:
    """Decide which participants of `join_quality` are included.

    Returns:
        Columns subject, included, twin_group, reason; subjects in ascending order.

    Raises:
        UserError: a region has no signal and the settings say `error`, or no subject is left.
    """
    reasons = _without_copies(measured, [reason_to_leave(row, settings) for row in measured.to_dict("records")])
    included = pd.DataFrame({"subject": measured["subject"], "included": [not reason for reason in reasons]})
    included["twin_group"] = _duplicate_groups(measured, included["included"])
    included["reason"] = pd.Series(reasons, dtype="str")
    if not included["included"].any():
        raise UserError(
            f"Cohort: expected a usable subject among {len(included)}, found none (most often: "
            f"{included['reason'].mode().iloc[0]}); mend this, in the table, the files or the settings of the cohort."
        )
    return included


def reason_to_leave(row: Mapping[Any, Any], settings: CohortSettings) -> str:
    """Reason to leave a subject out, copies aside; empty if it stays.

    `row` has subject, absence, problem, labelled, constant_regions, empty_regions and the measures of one subject.

    Raises:
        UserError: a region has no signal and the settings say `error`.
    """
    if row["absence"]:
        return str(row["absence"])
    if row["problem"]:
        return str(row["problem"])
    if not row["labelled"] and settings.unlabelled == "drop":
        return f"{settings.target} missing"
    silent = int(row["constant_regions"] + row["empty_regions"])
    if silent and settings.constant_regions == "error":
        raise UserError(
            f"Subject {row['subject']}: expected a signal in every region, found {silent} constant or empty ones; set "
            "constant_regions to impute_zero or drop_subject, or take the subject out of the table."
        )
    if silent and settings.constant_regions == "drop_subject":
        return f"{silent} regions without signal"
    return exclusion(row, settings.exclude)


def _without_copies(measured: pd.DataFrame, reasons: list[str]) -> list[str]:
    """Reasons, with unlabelled copies of labelled scans left out: in a fit they would stand for the labelled ones."""
    stays, labelled = pd.Series([not reason for reason in reasons]), measured["labelled"]
    known = measured[stays & labelled]
    same = measured["checksum"].isin(known["checksum"]) | measured["alike"].isin(known["alike"])
    copied = stays & ~labelled & same
    return [UNLABELLED_COPY if copy else reason for copy, reason in zip(copied, reasons, strict=True)]


def _duplicate_groups(measured: pd.DataFrame, included: pd.Series) -> pd.Series:
    """First of all included subjects with the same series or connectivity; an excluded subject stands alone."""
    series = measured["checksum"].where(included, measured["subject"])
    person = measured.groupby(series)["alike"].transform("first").where(included, "excluded " + measured["subject"])
    return measured.groupby(person)["subject"].transform("first").astype("str")


# Quality measures of every subject, with or without a scan, and what their comparison lets cross.

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


QUALITY_MEASURES = (
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
        connectivity: as `imaging._quality` measures it; none if not measured.

    Returns:
        subject, `EXPECTED` (float, NaN where unknown, as of an unusable series) with the mean FD as the scan alone
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
    return table.astype(dict.fromkeys(QUALITY_MEASURES, "float64"))[["subject", *QUALITY_MEASURES, "alike"]]


def with_motion(scans: pd.DataFrame, participants: pd.DataFrame) -> pd.DataFrame:
    """The measures of scans with the mean FD of the participants, and that of a scan where theirs is unknown.

    Args:
        scans: as of `measure_scans`.
        participants: subject, mean_fd (mm), fd_source; one row a participant.

    Returns:
        subject, fd_source (`table`: the phenotype table's mean FD, `scan`: measured, empty: unknown), `EXPECTED`,
        alike.
    """
    known = participants[["subject", "mean_fd", "fd_source"]].set_index("subject").loc[scans["subject"]]
    own = known["mean_fd"].astype("float64").set_axis(scans.index)
    measured = own.isna() & scans["mean_fd"].notna()
    source = known["fd_source"].set_axis(scans.index).mask(measured, "scan")
    motion = own.fillna(scans["mean_fd"])
    return scans.assign(fd_source=source, mean_fd=motion)[["subject", "fd_source", *QUALITY_MEASURES, "alike"]]


def _covered(coverage: pd.DataFrame, min_coverage: float) -> pd.DataFrame:
    """One row a subject: subject, coverage (mean over regions), unseen_regions, barely_seen_regions."""
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
    """Rows of the ledger for the connectivity of `subjects`, which `imaging._quality` compares.

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


def included_subjects(path: str | Path) -> list[str]:
    """Ids of the included subjects in `included.parquet`, in its order."""
    table = read_table(path, ["subject", "included"])
    return [str(subject) for subject in table.loc[table["included"], "subject"]]
