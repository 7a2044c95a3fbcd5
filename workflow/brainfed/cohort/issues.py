"""What a reader of the report should know about a cohort's data, and what was done about it."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

OWN_KINDS = frozenset({"no series", "series file absent", "confounds file absent", "diagnosis missing"})
"""Reasons that are kinds of their own: a download that broke off is not a subject that was never scanned."""
SILENT = "regions without signal"
UNUSABLE = "series unusable (damaged, short or not finite)"


class Issue(NamedTuple):
    """One line of the issues table; `subject` is empty where a whole site is meant."""

    subject: str
    kind: str
    detail: str
    action: str


def list_issues(
    measured: pd.DataFrame, included: pd.DataFrame, coverage: pd.DataFrame, min_coverage: float
) -> pd.DataFrame:
    """Everything worth a line: who was left out, twins, missing phenotypes, silent and barely seen regions, one-class
    sites.

    Args:
        measured: participants with their quality columns, one row a subject.
        included: subject, included, twin_group, reason; the same rows.
        coverage: subject, region, coverage.
        min_coverage: fraction of a region below which it counts as barely seen.

    Returns:
        Columns subject, kind, detail, action (str).
    """
    used = measured[included["included"]]
    issues = [
        *_left_out(included),
        *_twins(included),
        *_missing(used),
        *_silent_regions(used, coverage),
        *_low_coverage(used, coverage, min_coverage),
        *_one_class_sites(used),
    ]
    return pd.DataFrame(issues, columns=list(Issue._fields)).astype("str")


def _left_out(included: pd.DataFrame) -> Iterator[Issue]:
    for subject, reason in included.loc[~included["included"], ["subject", "reason"]].itertuples(index=False):
        yield Issue(subject, reason_kind(reason), reason, "left out")


def reason_kind(reason: str) -> str:
    """The kind of a reason to leave a subject out: it names no subject and no file."""
    if reason in OWN_KINDS:
        return reason
    return SILENT if re.fullmatch(r"\d+ regions? without signal", reason) else UNUSABLE


def _twins(included: pd.DataFrame) -> Iterator[Issue]:
    for _, group in included[included["included"]].groupby("twin_group"):
        if len(group) > 1:
            names = list(group["subject"])
            for subject in names:
                others = ", ".join(name for name in names if name != subject)
                yield Issue(subject, "identical series", f"the same data as {others}", "same fold, same institution")


def _missing(used: pd.DataFrame) -> Iterator[Issue]:
    for column in ("age", "sex"):
        for subject in used.loc[used[column].isna(), "subject"]:
            yield Issue(subject, f"{column} missing", f"no {column} in the phenotype table", "kept, matches nobody")


def _silent_regions(used: pd.DataFrame, coverage: pd.DataFrame) -> Iterator[Issue]:
    unseen = _regions_of(coverage[coverage["coverage"] == 0])
    columns = ["subject", "constant_regions", "empty_regions"]
    for subject, constant, empty in used[columns].itertuples(index=False):
        if constant:
            yield Issue(subject, "constant regions", f"{constant:.0f} regions", "kept, their correlations are 0")
        if empty:
            detail = f"{empty:.0f} regions: {_first(unseen.get(subject, []))}"
            yield Issue(subject, "empty regions", detail, "kept, their correlations are 0")


def _low_coverage(used: pd.DataFrame, coverage: pd.DataFrame, minimum: float) -> Iterator[Issue]:
    barely_seen = _regions_of(coverage[(coverage["coverage"] > 0) & (coverage["coverage"] < minimum)])
    for subject in used["subject"]:
        regions = barely_seen.get(subject, [])
        if regions:
            detail = f"{len(regions)} regions below {100 * minimum:g} %: {_first(regions)}"
            yield Issue(subject, "low coverage", detail, "kept, their series are means of what was seen")


def _regions_of(coverage: pd.DataFrame) -> dict[str, list[str]]:
    """Subject -> the regions of its rows."""
    return {str(subject): list(regions) for subject, regions in coverage.groupby("subject")["region"]}


def _first(regions: list[str], shown: int = 5) -> str:
    return f"{', '.join(regions[:shown])}{' ...' if len(regions) > shown else ''}"


def _one_class_sites(used: pd.DataFrame) -> Iterator[Issue]:
    for site, diagnoses in used.groupby("site")["diagnosis"]:
        if diagnoses.nunique() == 1:
            which = "patients" if diagnoses.iloc[0] == 1 else "controls"
            detail = f"site {site}: {len(diagnoses)} subjects, all {which}"
            yield Issue("", "one class", detail, "kept, its AUC is undefined")
