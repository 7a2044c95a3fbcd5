"""Issues of quality in included subjects: much motion, short scans, odd connectivity, sites apart.

They exclude nobody; `exclude` in the config does, and never by connectivity.
"""

from collections.abc import Iterator

import pandas as pd

from brainfed.cohort.class_words import CLASS_WORDS, ClassWords
from brainfed.cohort.quality.differences import group_difference, site_differences
from brainfed.cohort.quality.exclusion import active_rules
from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.settings.flags import FlagSettings

QualityIssue = tuple[str, str, str, str]
"""Subject (empty: a site or the cohort), kind, detail, action."""

SITE_MEASURES = (
    ("mean_fd", "motion", "mean FD", "{:.2f} mm"),
    ("mean_fc", "mean connectivity", "mean correlation", "{:.3f}"),
)


def quality_issues(used: pd.DataFrame, settings: CohortSettings) -> Iterator[QualityIssue]:
    """Issues in the order of the checks below.

    Args:
        used: the included subjects: subject, site, diagnosis, fd_problem and the measures.
        settings: the cohort's settings; `flag` has the limits.
    """
    yield from _unread(used)
    yield from _motion(used, settings.flag)
    yield from _short(used, settings.flag)
    yield from _unlike(used, settings.flag)
    yield from _unknown(used, settings)
    yield from _groups(used, CLASS_WORDS[settings.target])
    yield from _sites(used, settings.flag)


def _unread(used: pd.DataFrame) -> Iterator[QualityIssue]:
    rows = used.loc[used["fd_problem"] != "", ["subject", "fd_problem"]]
    for subject, problem in rows.itertuples(index=False):
        yield subject, "motion not readable", problem, "kept, how much it moved is not known"


def _motion(used: pd.DataFrame, flag: FlagSettings) -> Iterator[QualityIssue]:
    much = used[used["mean_fd"] > flag.mean_fd]
    for subject, value in much[["subject", "mean_fd"]].itertuples(index=False):
        yield subject, f"mean FD above {flag.mean_fd:g} mm", f"{value:.2f} mm", "kept; exclude.mean_fd leaves out"


def _short(used: pd.DataFrame, flag: FlagSettings) -> Iterator[QualityIssue]:
    short = used[used["kept_seconds"] < flag.kept_seconds]
    kind = f"scan shorter than {flag.kept_seconds / 60:.3g} min"
    for subject, value in short[["subject", "kept_seconds"]].itertuples(index=False):
        yield subject, kind, f"{value:.0f} s kept", "kept; exclude.min_kept_seconds leaves out"


def _unlike(used: pd.DataFrame, flag: FlagSettings) -> Iterator[QualityIssue]:
    odd = used[used["typicality_z"] < -flag.unlike]
    for subject, r, z in odd[["subject", "typicality", "typicality_z"]].itertuples(index=False):
        detail = f"r = {r:.2f} with the mean of the others (robust z = {z:.1f})"
        yield subject, "connectivity unlike the others", detail, "kept, look at the scan"


def _unknown(used: pd.DataFrame, settings: CohortSettings) -> Iterator[QualityIssue]:
    for name, rule in active_rules(settings.exclude).items():
        for subject in used.loc[used[rule.measure].isna(), "subject"]:
            yield subject, f"{rule.words} not known", f"exclude.{name} has nothing to judge by", "kept"


def _groups(used: pd.DataFrame, words: ClassWords) -> Iterator[QualityIssue]:
    found = group_difference(used["mean_fd"], used["diagnosis"])
    if found and found.significant:
        first, second = words.many[1], words.many[0]
        detail = f"{first} {found.patients:.2f} mm, {second} {found.controls:.2f} mm, d = {found.effect:.2f}"
        yield "", f"{first} and {second} differ in motion", detail, "kept; compare with the method `motion`"


def _sites(used: pd.DataFrame, flag: FlagSettings) -> Iterator[QualityIssue]:
    for column, what, title, shown in SITE_MEASURES:
        found = site_differences(used[column], used["site"])
        apart = found.apart(flag.site_effect) if found else pd.DataFrame(columns=["site", "mean", "others", "effect"])
        for site, own, others, effect in apart[["site", "mean", "others", "effect"]].itertuples(index=False):
            detail = f"site {site}: {title} {shown.format(own)}, elsewhere {shown.format(others)}, d = {effect:.2f}"
            yield "", f"site apart in {what}", detail, "kept; test on unseen sites, or harmonise"
