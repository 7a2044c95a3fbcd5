"""Inclusion of subjects: exclusion by the quality of their scans, and every other reason to leave."""

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from brainfed.cohort.settings.cohort import CohortSettings, ExclusionSettings
from brainfed.runtime.errors import UserError

UNLABELLED_COPY = "unlabelled copy of a labelled subject"
"""The reason to leave of a subject without a label."""
MEASURES = "expected whole FreeSurfer measures"
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
# They form a twin group, which no split may divide.

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
    included["twin_group"] = _twin_groups(measured, included["included"])
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


def _twin_groups(measured: pd.DataFrame, included: pd.Series) -> pd.Series:
    """First of all included subjects with the same series or connectivity; an excluded subject stands alone."""
    series = measured["checksum"].where(included, measured["subject"])
    person = measured.groupby(series)["alike"].transform("first").where(included, "excluded " + measured["subject"])
    return measured.groupby(person)["subject"].transform("first").astype("str")
