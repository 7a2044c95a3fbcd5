"""Issues of a cohort's data for readers of the report, each with the action taken."""

import re
from collections.abc import Iterator, Sequence
from itertools import starmap
from typing import NamedTuple

import pandas as pd

from brainfed.cohort.classes import ClassWords, Target, class_words
from brainfed.cohort.quality.differences import against_rest, group_difference, site_differences
from brainfed.cohort.quality.inclusion import MEASURES, UNLABELLED_COPY, active_rules, exclusion_kind
from brainfed.cohort.settings.cohort import CohortSettings, FlagSettings

# Issues of quality in included subjects: much motion, short scans, odd connectivity, sites apart.
#
# They exclude nobody; `exclude` in the config does, and never by connectivity.

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
    yield from _groups(used, class_words(settings.target, settings.classes))
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
    for code, named in words.contrasts:
        found = group_difference(used["mean_fd"], against_rest(used["diagnosis"], code))
        if found and found.significant:
            first, second = named.many[1], named.many[0]
            detail = f"{first} {found.patients:.2f} mm, {second} {found.controls:.2f} mm, d = {found.effect:.2f}"
            yield "", f"{first} and {second} differ in motion", detail, "kept; compare with the method `motion`"


def _sites(used: pd.DataFrame, flag: FlagSettings) -> Iterator[QualityIssue]:
    for column, what, title, shown in SITE_MEASURES:
        found = site_differences(used[column], used["site"])
        apart = found.apart(flag.site_effect) if found else pd.DataFrame(columns=["site", "mean", "others", "effect"])
        for site, own, others, effect in apart[["site", "mean", "others", "effect"]].itertuples(index=False):
            detail = f"site {site}: {title} {shown.format(own)}, elsewhere {shown.format(others)}, d = {effect:.2f}"
            yield "", f"site apart in {what}", detail, "kept; test on unseen sites, or harmonise"


# Issues of a cohort's data for readers of the report, with the action taken.

OWN_KINDS = frozenset(
    {
        "excluded by diagnosis",
        "no series",
        "series file absent",
        "confounds file absent",
        "no FreeSurfer id",
        "stats folder absent",
        "brain mask absent",
        "sidecar without content",
        "diagnosis missing",
        "sex missing",
        UNLABELLED_COPY,
    }
)
"""Reasons that are kinds of their own: an interrupted download differs from a subject without a scan."""
PHENOTYPES: dict[Target, tuple[str, ...]] = {"diagnosis": ("age", "sex"), "sex": ("age",), "class": ()}
"""Target -> phenotypes that are listed where they are missing; graphs have none."""
SILENT = "regions without signal"
UNMEASURED = "FreeSurfer measures unusable (absent or no numbers)"
WITHOUT_MEASURES = "no FreeSurfer measures beside the scan"
UNUSABLE = "series unusable (damaged, short or not finite)"


class Issue(NamedTuple):
    """One line of the issues table; `subject` is empty for an issue of a site."""

    subject: str
    kind: str
    detail: str
    action: str


def list_issues(
    measured: pd.DataFrame,
    included: pd.DataFrame,
    coverage: pd.DataFrame,
    settings: CohortSettings,
    strangers: Sequence[str] = (),
    further: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """List subjects left out or without a label, twins, missing phenotypes, silent and barely seen regions, missing
    runs, contradictory repetition times, one-class sites, resampled atlases, images in an unexpected space, scans
    without FreeSurfer measures, and the issues of quality (`quality_issues`).

    Args:
        measured: participants with their quality columns and measures, as `join_quality` returns them.
        included: subject, included, twin_group, reason; the same rows.
        coverage: subject, region, coverage.
        settings: the cohort's settings.
        strangers: subjects with images and without a row in the phenotype table.
        further: subject, problem of FreeSurfer's measures beside scans; None: the cohort has none.

    Returns:
        Columns subject, kind, detail, action (str).
    """
    used = measured[included["included"]]
    issues = [
        *_left_out(included),
        *(
            Issue(name, "not in the table", "images, and no row in the phenotype table", "left out")
            for name in strangers
        ),
        *_twins(used, included, "measures" if settings.kind == "morphometry" else "series"),
        *_unlabelled(used, settings.target),
        *_missing(used, PHENOTYPES[settings.target]),
        *_silent_regions(used, coverage),
        *_low_coverage(used, coverage, settings.min_coverage),
        *_fewer_runs(used),
        *_repetition_times(used),
        *_one_class_sites(used, class_words(settings.target, settings.classes)),
        *_resampled(used),
        *_suspicious(used),
        *(_unmeasured(used, further) if further is not None else ()),
        *starmap(Issue, quality_issues(used, settings)),
    ]
    return pd.DataFrame(issues, columns=list(Issue._fields)).astype("str")


def _left_out(included: pd.DataFrame) -> Iterator[Issue]:
    for subject, reason in included.loc[~included["included"], ["subject", "reason"]].itertuples(index=False):
        yield Issue(subject, reason_kind(reason), reason, "left out")


def reason_kind(reason: str) -> str:
    """Kind of a reason to leave a subject out, without the names of subject and file."""
    if reason in OWN_KINDS:
        return reason
    if kind := exclusion_kind(reason):
        return kind
    if MEASURES in reason:
        return UNMEASURED
    return SILENT if re.fullmatch(r"\d+ regions? without signal", reason) else UNUSABLE


def _twins(used: pd.DataFrame, included: pd.DataFrame, data: str) -> Iterator[Issue]:
    checksums = used.set_index("subject")["checksum"]
    kept = included[included["included"]]
    for _, group in kept[kept["twin_group"].duplicated(keep=False)].groupby("twin_group"):
        names = list(group["subject"])
        identical = checksums[names].nunique() == 1
        kind = f"identical {data}" if identical else "nearly identical connectivity"
        what = "the same data as" if identical else "the same person or scan as"
        against = _contradiction(used[used["subject"].isin(names)])
        for subject in names:
            others = ", ".join(name for name in names if name != subject)
            yield Issue(subject, kind, f"{what} {others}{against}", "same fold, same institution")


def _contradiction(copies: pd.DataFrame) -> str:
    """Words on copies with several diagnoses, sexes, or ages more than a year apart; empty if they agree."""
    ages = copies["age"].astype("float64").dropna()
    found = {
        "diagnoses": copies["diagnosis"].nunique() > 1,
        "sexes": copies["sex"].nunique() > 1,
        "ages": len(ages) > 1 and round(float(ages.max() - ages.min()), 6) > 1,
    }
    different = " and ".join(name for name, several in found.items() if several)
    return f", with different {different}: at least one file or row is wrong" if different else ""


def _unlabelled(used: pd.DataFrame, target: Target) -> Iterator[Issue]:
    for subject in used.loc[used["diagnosis"].isna(), "subject"]:
        yield Issue(subject, "unlabelled", f"no {target} in the phenotype table", "kept without a label, never scored")


def _missing(used: pd.DataFrame, columns: Sequence[str]) -> Iterator[Issue]:
    for column in columns:
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
    """Subject -> regions of its rows."""
    return {str(subject): list(regions) for subject, regions in coverage.groupby("subject")["region"]}


def _first(regions: list[str], shown: int = 5) -> str:
    return f"{', '.join(regions[:shown])}{' ...' if len(regions) > shown else ''}"


def _fewer_runs(used: pd.DataFrame) -> Iterator[Issue]:
    if used.empty:
        return
    usual = used["runs"].mode().iloc[0]
    for subject, runs in used.loc[used["runs"] < usual, ["subject", "runs"]].itertuples(index=False):
        yield Issue(subject, "fewer runs", f"{runs:.0f} used, most subjects have {usual:.0f}", "kept")


def _repetition_times(used: pd.DataFrame) -> Iterator[Issue]:
    known = used[used["header_tr"].notna()]
    for subject, tr, header in known[["subject", "tr", "header_tr"]].itertuples(index=False):
        detail = f"sidecar {tr:g} s, image header {header:g} s"
        yield Issue(subject, "repetition times disagree", detail, "kept, the sidecar's is used")


def _one_class_sites(used: pd.DataFrame, words: ClassWords) -> Iterator[Issue]:
    for site, diagnoses in used.dropna(subset="diagnosis").groupby("site")["diagnosis"]:
        if diagnoses.nunique() == 1:
            which = words.many[int(diagnoses.iloc[0])]
            detail = f"site {site}: {len(diagnoses)} subjects, all {which}"
            yield Issue("", "one class", detail, "kept, its AUC is undefined")


def _resampled(used: pd.DataFrame) -> Iterator[Issue]:
    for how, members in used[used["resampled"].fillna("") != ""].groupby("resampled"):
        detail = f"atlas resampled {how}: {len(members)} subjects"
        yield Issue("", "atlas resampled", detail, "kept, nearest label (maps are interpolated)")


def _unmeasured(used: pd.DataFrame, further: pd.DataFrame) -> Iterator[Issue]:
    problems = dict(zip(further["subject"], further["problem"], strict=True))
    for subject in used["subject"]:
        if problem := problems.get(subject, "no FreeSurfer id"):
            yield Issue(subject, WITHOUT_MEASURES, problem, "kept, lacks this view")


def _suspicious(used: pd.DataFrame) -> Iterator[Issue]:
    rows = used.loc[used["suspicion"].fillna("") != "", ["subject", "suspicion"]]
    for subject, suspicion in rows.itertuples(index=False):
        yield Issue(subject, "space of the image", suspicion, "kept, look at its registration")
