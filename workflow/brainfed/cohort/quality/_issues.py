"""Issues of a cohort's data for readers of the report, each with the action taken.

They exclude nobody; `exclude` in the config does, and never by connectivity.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from brainfed.cohort import ClassWords, Target, class_words
from brainfed.cohort.quality._inclusion import EXPECTED, UNLABELLED_COPY, active_rules, exclusion_kind
from brainfed.cohort.settings import CohortSettings, FlagSettings
from brainfed.cohort.sources import Absence
from brainfed.evaluation import holm

# Differences of quality measures between classes and between sites; association of site and diagnosis.

FEWEST = 2
"""Fewest subjects of a group with a spread."""


@dataclass(frozen=True)
class GroupDifference:
    """Difference of a measure between patients and controls, from their means.

    `low` and `high` are the ends of the 95 % interval of patients minus controls, `p` is that of Welch's t-test (two
    sides), `effect` is Cohen's d.
    """

    patients: float
    controls: float
    low: float
    high: float
    p: float
    effect: float

    @property
    def significant(self) -> bool:
        """Whether p is below 5 %."""
        return self.p < 0.05


def group_difference(values: pd.Series, diagnosis: pd.Series) -> GroupDifference | None:
    """Compare patients (1) and controls (0); subjects without a diagnosis or a value take no part.

    Returns None if a group has fewer than two values, or nothing varies.
    """
    known = values.notna() & diagnosis.notna()
    first = values[known & (diagnosis == 1).fillna(False)].to_numpy(dtype=np.float64)
    second = values[known & (diagnosis == 0).fillna(False)].to_numpy(dtype=np.float64)
    if min(len(first), len(second)) < FEWEST or max(np.ptp(first), np.ptp(second)) == 0:
        return None
    test = stats.ttest_ind(first, second, equal_var=False)
    interval = test.confidence_interval()
    return GroupDifference(
        float(first.mean()), float(second.mean()), float(interval.low), float(interval.high), float(test.pvalue),
        cohen(first, second),
    )  # fmt: skip


def against_rest(diagnosis: pd.Series, code: int) -> pd.Series:
    """1 for the class `code`, 0 for every other class, missing without a diagnosis (missing or negative)."""
    return (diagnosis == code).astype("Int8").where((diagnosis >= 0).fillna(False))


@dataclass(frozen=True)
class SiteDifferences:
    """Differences of a measure between sites.

    Attributes:
        explained: eta squared, the share of the variance between sites.
        p: of the one-way analysis of variance.
        sites: site, subjects, mean, others (mean of all other sites), effect (Cohen's d against them), p_holm
            (Welch's t-test against them, Holm over sites); sites with two values or more, in ascending order.
    """

    explained: float
    p: float
    sites: pd.DataFrame

    def apart(self, effect: float) -> pd.DataFrame:
        """Sites that differ significantly from the others by `effect` standard deviations or more."""
        return self.sites[(self.sites["p_holm"] < 0.05) & (self.sites["effect"].abs() >= effect)]


def site_differences(values: pd.Series, site: pd.Series) -> SiteDifferences | None:
    """Compare the sites; None if fewer than two have two values, or nothing varies."""
    known = values.notna() & site.notna()
    measured, where = values[known].to_numpy(dtype=np.float64), site[known].to_numpy(dtype=object)
    names = [name for name in sorted(set(where)) if (where == name).sum() >= FEWEST]
    parts = [measured[where == name] for name in names]
    if len(names) < 2 or all(np.ptp(part) == 0 for part in parts):
        return None
    rows = []
    for name, part in zip(names, parts, strict=True):
        others = measured[where != name]
        p = float(stats.ttest_ind(part, others, equal_var=False).pvalue)
        rows.append((name, len(part), float(part.mean()), float(others.mean()), cohen(part, others), p))
    sites = pd.DataFrame(rows, columns=["site", "subjects", "mean", "others", "effect", "p_holm"])
    sites["p_holm"] = holm(sites["p_holm"].fillna(1.0).to_numpy())
    pooled = np.concatenate(parts)
    between = sum(len(part) * (part.mean() - pooled.mean()) ** 2 for part in parts)
    total = ((pooled - pooled.mean()) ** 2).sum()
    return SiteDifferences(float(between / total), float(stats.f_oneway(*parts).pvalue), sites)


@dataclass(frozen=True)
class ClassesBySite:
    """Distribution of the classes over sites.

    Attributes:
        v: Cramer's V of sites and classes: 0, equal shares of the classes at all sites; 1, the site decides.
        p: of the chi-square test.
        guessed: share of the subjects with the more frequent class of their site.
        chance: share of the more frequent class of the cohort.
        sites: number of sites.
        one_class: number of sites with one class only.
    """

    v: float
    p: float
    guessed: float
    chance: float
    sites: int
    one_class: int


def classes_by_site(diagnosis: pd.Series, site: pd.Series) -> ClassesBySite | None:
    """Count the classes by site; subjects without a diagnosis or site take no part.

    Returns None if there are fewer than two sites or one class.
    """
    known = (diagnosis >= 0).fillna(False) & site.notna()
    table = pd.crosstab(site[known], diagnosis[known]).to_numpy()
    if min(table.shape) < 2:
        return None
    test = stats.chi2_contingency(table, correction=False)
    total, freedom = int(table.sum()), min(table.shape) - 1
    return ClassesBySite(
        float(np.sqrt(test.statistic / (total * freedom))), float(test.pvalue), float(table.max(axis=1).sum() / total),
        float(table.sum(axis=0).max() / total), len(table), int(((table > 0).sum(axis=1) == 1).sum()),
    )  # fmt: skip


def cohen(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Cohen's d: difference of the means in pooled standard deviations; NaN if nothing varies."""
    freedom = len(first) + len(second) - 2
    pooled = ((len(first) - 1) * first.var(ddof=1) + (len(second) - 1) * second.var(ddof=1)) / freedom
    return float((first.mean() - second.mean()) / np.sqrt(pooled)) if pooled > 0 else float("nan")


# The issues, each with the action taken.

OWN_KINDS = {*get_args(Absence), "diagnosis missing", "sex missing", UNLABELLED_COPY} - {""}
"""Reasons that are kinds of their own: an interrupted download differs from a subject without a scan."""
PHENOTYPES: dict[Target, tuple[str, ...]] = {"diagnosis": ("age", "sex"), "sex": ("age",), "class": ()}
"""Target -> phenotypes that are listed where they are missing; graphs have none."""
SILENT = "regions without signal"
UNMEASURED = "FreeSurfer measures unusable (absent or no numbers)"
WITHOUT_MEASURES = "no FreeSurfer measures beside the scan"
UNUSABLE = "series unusable (damaged, short or not finite)"
SITE_MEASURES = (
    ("mean_fd", "motion", "mean FD", "{:.2f} mm"),
    ("mean_fc", "mean connectivity", "mean correlation", "{:.3f}"),
)


class Issue(NamedTuple):
    """One line of the issues table; `subject` is empty for an issue of a site or of the cohort."""

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
    """The subjects left out, and everything that is odd about those who are included.

    Args:
        measured: participants with their quality columns and measures, as `join_quality` returns them.
        included: subject, included, twin_group, reason; the same rows.
        coverage: subject, region, coverage.
        settings: of the cohort.
        strangers: subjects with images and without a row in the phenotype table.
        further: subject, problem of FreeSurfer's measures beside scans; None: the cohort has none.

    Returns:
        Columns subject, kind, detail, action (str).
    """
    used = measured[included["included"]]
    words = class_words(settings.target, settings.classes)
    issues = [
        *(
            Issue(row.subject, reason_kind(row.reason), row.reason, "left out")
            for row in _rows(included[~included["included"]])
        ),
        *(
            Issue(name, "not in the table", "images, and no row in the phenotype table", "left out")
            for name in strangers
        ),
        *_duplicates(used, included, "measures" if settings.kind == "morphometry" else "series"),
        *_of_participants(used, settings),
        *_silent_regions(used, coverage),
        *_low_coverage(used, coverage, settings.min_coverage),
        *_of_scans(used, words),
        *(_unmeasured(used, further) if further is not None else ()),
        *_of_quality(used, settings, words),
    ]
    return pd.DataFrame(issues, columns=list(Issue._fields)).astype("str")


def reason_kind(reason: str) -> str:
    """Kind of a reason to leave a subject out, without the names of subject and file."""
    if reason in OWN_KINDS:
        return reason
    if kind := exclusion_kind(reason):
        return kind
    if EXPECTED in reason:
        return UNMEASURED
    return SILENT if re.fullmatch(r"\d+ regions? without signal", reason) else UNUSABLE


def _rows(table: pd.DataFrame) -> Iterator[Any]:
    """The rows with their columns as attributes."""
    return iter(table.itertuples(index=False))


def _each(rows: pd.DataFrame, kind: str, detail: str | Callable[[Any], str], action: str) -> Iterator[Issue]:
    """An issue of every row; its detail is the same for all, or made of the row."""
    for row in _rows(rows):
        yield Issue(row.subject, kind, detail if isinstance(detail, str) else detail(row), action)


def _duplicates(used: pd.DataFrame, included: pd.DataFrame, data: str) -> Iterator[Issue]:
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
    contradicts = {
        "diagnoses": copies["diagnosis"].nunique() > 1,
        "sexes": copies["sex"].nunique() > 1,
        "ages": len(ages) > 1 and round(float(ages.max() - ages.min()), 6) > 1,
    }
    different = " and ".join(name for name, several in contradicts.items() if several)
    return f", with different {different}: at least one file or row is wrong" if different else ""


def _of_participants(used: pd.DataFrame, settings: CohortSettings) -> Iterator[Issue]:
    """Included subjects without a label, or without a phenotype."""
    unlabelled, kept = used[used["diagnosis"].isna()], "kept without a label, never scored"
    yield from _each(unlabelled, "unlabelled", f"no {settings.target} in the phenotype table", kept)
    for column in PHENOTYPES[settings.target]:
        unknown = used[used[column].isna()]
        yield from _each(unknown, f"{column} missing", f"no {column} in the phenotype table", "kept, matches nobody")


def _silent_regions(used: pd.DataFrame, coverage: pd.DataFrame) -> Iterator[Issue]:
    unseen = _regions_of(coverage[coverage["coverage"] == 0])
    for row in _rows(used):
        if row.constant_regions:
            detail = f"{row.constant_regions:.0f} regions"
            yield Issue(row.subject, "constant regions", detail, "kept, their correlations are 0")
        if row.empty_regions:
            detail = f"{row.empty_regions:.0f} regions: {_first(unseen.get(row.subject, []))}"
            yield Issue(row.subject, "empty regions", detail, "kept, their correlations are 0")


def _low_coverage(used: pd.DataFrame, coverage: pd.DataFrame, minimum: float) -> Iterator[Issue]:
    barely_seen = _regions_of(coverage[(coverage["coverage"] > 0) & (coverage["coverage"] < minimum)])
    for subject in used["subject"]:
        if regions := barely_seen.get(subject, []):
            detail = f"{len(regions)} regions below {100 * minimum:g} %: {_first(regions)}"
            yield Issue(subject, "low coverage", detail, "kept, their series are means of what was seen")


def _regions_of(coverage: pd.DataFrame) -> dict[str, list[str]]:
    """Subject -> regions of its rows."""
    return {str(subject): list(regions) for subject, regions in coverage.groupby("subject")["region"]}


def _first(regions: list[str], shown: int = 5) -> str:
    return f"{', '.join(regions[:shown])}{' ...' if len(regions) > shown else ''}"


def _of_scans(used: pd.DataFrame, words: ClassWords) -> Iterator[Issue]:
    """Missing runs, contradictory repetition times, sites of one class, resampled atlases, images in another space."""
    if not used.empty:
        usual = used["runs"].mode().iloc[0]
        fewer = used[used["runs"] < usual]
        yield from _each(
            fewer, "fewer runs", lambda row: f"{row.runs:.0f} used, most subjects have {usual:.0f}", "kept"
        )
    yield from _each(
        used[used["header_tr"].notna()],
        "repetition times disagree",
        lambda row: f"sidecar {row.tr:g} s, image header {row.header_tr:g} s",
        "kept, the sidecar's is used",
    )
    for site, diagnoses in used.dropna(subset="diagnosis").groupby("site")["diagnosis"]:
        if diagnoses.nunique() == 1:
            detail = f"site {site}: {len(diagnoses)} subjects, all {words.many[int(diagnoses.iloc[0])]}"
            yield Issue("", "one class", detail, "kept, its AUC is undefined")
    for how, members in used[used["resampled"].fillna("") != ""].groupby("resampled"):
        detail = f"atlas resampled {how}: {len(members)} subjects"
        yield Issue("", "atlas resampled", detail, "kept, nearest label (maps are interpolated)")
    odd = used[used["suspicion"].fillna("") != ""]
    yield from _each(odd, "space of the image", lambda row: row.suspicion, "kept, look at its registration")


def _unmeasured(used: pd.DataFrame, further: pd.DataFrame) -> Iterator[Issue]:
    problems = dict(zip(further["subject"], further["problem"], strict=True))
    for subject in used["subject"]:
        if problem := problems.get(subject, "no FreeSurfer id"):
            yield Issue(subject, WITHOUT_MEASURES, problem, "kept, lacks this view")


# Issues of quality: much motion, short scans, odd connectivity, unlike groups and sites.


def _of_quality(used: pd.DataFrame, settings: CohortSettings, words: ClassWords) -> Iterator[Issue]:
    flag = settings.flag
    unread = used[used["fd_problem"] != ""]
    yield from _each(unread, "motion not readable", lambda row: row.fd_problem, "kept, how much it moved is not known")
    yield from _each(
        used[used["mean_fd"] > flag.mean_fd],
        f"mean FD above {flag.mean_fd:g} mm",
        lambda row: f"{row.mean_fd:.2f} mm",
        "kept; exclude.mean_fd leaves out",
    )
    yield from _each(
        used[used["kept_seconds"] < flag.kept_seconds],
        f"scan shorter than {flag.kept_seconds / 60:.3g} min",
        lambda row: f"{row.kept_seconds:.0f} s kept",
        "kept; exclude.min_kept_seconds leaves out",
    )
    yield from _each(
        used[used["typicality_z"] < -flag.unlike],
        "connectivity unlike the others",
        lambda row: f"r = {row.typicality:.2f} with the mean of the others (robust z = {row.typicality_z:.1f})",
        "kept, look at the scan",
    )
    for name, rule in active_rules(settings.exclude).items():
        unknown = used[used[rule.measure].isna()]
        yield from _each(unknown, f"{rule.words} not known", f"exclude.{name} has nothing to judge by", "kept")
    yield from _groups(used, words)
    yield from _sites(used, flag)


def _groups(used: pd.DataFrame, words: ClassWords) -> Iterator[Issue]:
    for code, named in words.contrasts:
        motion = group_difference(used["mean_fd"], against_rest(used["diagnosis"], code))
        if motion and motion.significant:
            first, second = named.many[1], named.many[0]
            detail = f"{first} {motion.patients:.2f} mm, {second} {motion.controls:.2f} mm, d = {motion.effect:.2f}"
            yield Issue("", f"{first} and {second} differ in motion", detail, "kept; compare with the method `motion`")


def _sites(used: pd.DataFrame, flag: FlagSettings) -> Iterator[Issue]:
    for column, what, title, shown in SITE_MEASURES:
        differences = site_differences(used[column], used["site"])
        for row in _rows(differences.apart(flag.site_effect)) if differences else ():
            mean, others = shown.format(row.mean), shown.format(row.others)
            detail = f"site {row.site}: {title} {mean}, elsewhere {others}, d = {row.effect:.2f}"
            yield Issue("", f"site apart in {what}", detail, "kept; test on unseen sites, or harmonise")
