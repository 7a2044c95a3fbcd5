"""What the page on a study between sites shows: the study's config, the sites' counts, the numbers and their tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from brainfed.cohort import ClassWords
from brainfed.configuration import StudySettings
from brainfed.reporting import NONE, Interval, ShownVariant, rounded, signed
from brainfed.reporting.tables import Cell, Row
from brainfed.reporting.text import TestedPeople, count_tested
from brainfed.sites._scores import (
    MORE_CLASSES,
    TWO_CLASSES,
    TestedFold,
    at_site,
    auc_by_run,
    by_run,
    in_both,
    of_all,
    over_runs,
    over_sites,
    subjects,
)
from brainfed.sites.released import Stated


@dataclass(frozen=True)
class OutcomeExperiment:
    """One table of the page.

    Attributes:
        name: name in the config.
        title: its heading.
        reference: name of the variant that the others are compared with.
        repeats: number of repeats.
        folds: number of folds of a repeat.
        variants: in the order of the config.
        unseen: whether each site is tested in one fold, by models that never saw it.
    """

    name: str
    title: str
    reference: str
    repeats: int
    folds: int
    variants: tuple[ShownVariant, ...]
    unseen: bool = False

    @property
    def tests_of_site(self) -> int:
        """Tests of one site: folds of all repeats that have some of its subjects."""
        return self.repeats * (1 if self.unseen else self.folds)


@dataclass(frozen=True)
class OutcomeOutline:
    """The whole page.

    Attributes:
        project: its name.
        words: nouns of the cohort.
        kind: kind of its features: `connectivity` or `morphometry`.
        simulated: whether its data are made up.
        sites: names, in the order of the study.
        fewest: tested subjects of a fold below which a site sends no row.
        experiments: in the order of the config; the first has the first screen.
        counts: variant -> what all sites say of it.
        study: its settings.
        stated: what its file says that it releases.
        digest: of the study, as the coordinator prints it.
        config: name of the study's file.
        steps: number of rounds and sums.
        ended: day and time.
    """

    project: str
    words: ClassWords
    kind: str
    simulated: bool
    sites: tuple[str, ...]
    fewest: int
    experiments: tuple[OutcomeExperiment, ...]
    counts: Mapping[str, list[TestedFold]]
    study: StudySettings
    stated: Stated
    digest: str
    config: str
    steps: int
    ended: str

    @property
    def noun(self) -> str:
        """What is tested."""
        return "graphs" if self.words.subjects == "graphs" else "people"


# The numbers of the page on a study between sites, all of them from the sites' counts.

METRIC = "balanced_accuracy"
"""What answers the question: it adds up over sites, and a class that is frequent does not raise it."""
AUC = "auc"


@dataclass(frozen=True)
class VariantResult:
    """One variant.

    Attributes:
        variant: the variant.
        folds: what the sites say of it.
        values: metric -> value of all sites together, with its interval over runs; `auc` is a mean of the sites' own.
        across: the mean of the sites' balanced accuracies, with its interval over sites; its `runs` are sites.
        at_sites: site -> balanced accuracy of its subjects; NaN where it is undefined.
    """

    variant: ShownVariant
    folds: Sequence[TestedFold]
    values: Mapping[str, Interval]
    across: Interval
    at_sites: Mapping[str, float]

    @property
    def score(self) -> Interval:
        """Its balanced accuracy."""
        return self.values[METRIC]


@dataclass(frozen=True)
class SiteResult:
    """One site: its tested subjects by class code, and the number of folds that it sent a row of."""

    name: str
    people: Mapping[int, int]
    rows: int


@dataclass(frozen=True)
class ExperimentResult:
    """One experiment.

    Attributes:
        experiment: the experiment.
        ratio: n_test / n_train of a run; None where a run is a site, so that runs show no spread over other people.
        variants: in the order of the config.
        sites: in the order of the study.
        tested: numbers of tested subjects; None without any row.
    """

    experiment: OutcomeExperiment
    ratio: float | None
    variants: tuple[VariantResult, ...]
    sites: tuple[SiteResult, ...]
    tested: TestedPeople | None

    @property
    def reference(self) -> VariantResult:
        """The variant that the others are compared with."""
        return next(result for result in self.variants if result.variant.name == self.experiment.reference)

    @property
    def expected(self) -> int:
        """Folds of sites in all repeats."""
        return len(self.sites) * self.experiment.tests_of_site

    @property
    def missing(self) -> int:
        """Folds of sites that no variant has a row of."""
        return self.expected - sum(site.rows for site in self.sites)

    def difference(self, outcome: VariantResult, other: VariantResult) -> Interval:
        """Balanced accuracy of one variant minus that of another, of all sites together, paired by run."""
        own, others = in_both(outcome.folds, other.folds)
        first, second = by_run(own, METRIC), by_run(others, METRIC)
        runs = [first[run] - second[run] for run in first if run in second]
        value = of_all(own, METRIC) - of_all(others, METRIC)
        return _interval(value, runs, self.ratio)


def read_results(outline: OutcomeOutline, experiment: OutcomeExperiment) -> ExperimentResult:
    """All numbers of an experiment."""
    ratio = None if experiment.unseen else 1 / (experiment.folds - 1)
    classes = outline.words.count
    variants = tuple(
        _variant(variant, outline.counts.get(variant.name, []), outline.sites, ratio, classes)
        for variant in experiment.variants
    )
    once = list({(fold.site, fold.run): fold for result in variants for fold in result.folds}.values())
    sites = []
    for name in outline.sites:
        own = at_site(once, name)
        sites.append(SiteResult(name, dict(enumerate(subjects(own, classes).tolist())), len(own)))
    return ExperimentResult(experiment, ratio, variants, tuple(sites), _tested(once, outline.noun))


def _variant(
    variant: ShownVariant, folds: Sequence[TestedFold], sites: Sequence[str], ratio: float | None, classes: int
) -> VariantResult:
    metrics = TWO_CLASSES if classes == 2 else MORE_CLASSES
    values = {metric: _share(of_all(folds, metric), list(by_run(folds, metric).values()), ratio) for metric in metrics}
    aucs = list(auc_by_run(folds).values())
    values[AUC] = _share(float(np.mean(aucs)) if aucs else np.nan, aucs, ratio)
    at_sites = {site: of_all(at_site(folds, site), METRIC) for site in sites}
    spread = over_sites(list(at_sites.values()))
    defined = int(np.isfinite(list(at_sites.values())).sum())
    across = _inside(Interval(spread.difference, spread.ci_low, spread.ci_high, defined))
    return VariantResult(variant, folds, values, across, at_sites)


def _share(value: float, runs: Sequence[float], ratio: float | None) -> Interval:
    return _inside(_interval(value, runs, ratio))


def _interval(value: float, runs: Sequence[float], ratio: float | None) -> Interval:
    bounds = (np.nan, np.nan) if ratio is None else over_runs(value, runs, ratio)
    return Interval(value, *bounds, len(runs))


def _inside(interval: Interval) -> Interval:
    """Bounds of a share inside [0, 1]."""
    low, high = np.clip([interval.low, interval.high], 0.0, 1.0)
    return Interval(interval.mean, float(low), float(high), interval.runs)


def _tested(folds: Sequence[TestedFold], noun: str) -> TestedPeople | None:
    """How many subjects stand behind a score, from a row a tested subject."""
    if not folds:
        return None
    rows = pd.DataFrame(
        [(fold.run[0], fold.run[1], fold.site) for fold in folds for _ in range(int(fold.counts.sum()))],
        columns=["repeat", "fold", "institution"],
    )
    return count_tested(rows, noun)


# The page on a study between sites as tables of text: scores of all sites together, and scores by site.


@dataclass(frozen=True)
class Head:
    """A column's head: its title, and a second, smaller line."""

    title: str
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table of the page: the heads of all columns but the first, and a row a variant."""

    heads: Sequence[Head]
    rows: Sequence[Row]


def score_table(result: ExperimentResult, words: ClassWords) -> Table:
    """Measures of all sites together, below each its interval over runs."""
    titles = {
        "accuracy": Head("accuracy", "all sites together"),
        "recall": Head("sensitivity", f"of {words.many[1]}"),
        "specificity": Head("specificity", f"of {words.many[0]}"),
    }
    metrics = (TWO_CLASSES if words.count == 2 else MORE_CLASSES)[1:]
    heads = [
        Head("balanced accuracy", "all sites together"),
        Head("balanced accuracy", "mean of the sites"),
        *(titles[metric] for metric in metrics),
        Head("AUC", "mean of the sites"),
    ]
    best = max((outcome.score.mean for outcome in result.variants if np.isfinite(outcome.score.mean)), default=np.nan)
    rows = []
    for outcome in result.variants:
        first = _cell(outcome.score, marked=outcome.score.mean == best) if outcome.folds else Cell(NONE, note="no row")
        cells = [first, _across(outcome.across), *(_cell(outcome.values[metric]) for metric in (*metrics, AUC))]
        rows.append(Row(outcome.variant, tuple(cells)))
    return Table(heads, rows)


def site_table(result: ExperimentResult, words: ClassWords) -> Table:
    """Balanced accuracy at each site and of all together, below each the difference from the reference."""
    heads = [Head(site.name, by_class(site.people, words)) for site in result.sites]
    rows = [Row(outcome.variant, tuple(_site_cells(result, outcome, words))) for outcome in result.variants]
    return Table([Head("all sites together"), *heads], rows)


def by_class(people: Mapping[int, int], words: ClassWords) -> str:
    """`20 patients, 25 controls`; `20 CN, 25 MCI, 9 AD`."""
    names = words.many if words.count == 2 else words.short
    return ", ".join(f"{people[code]:,} {names[code]}" for code in words.shown)


def undefined(result: ExperimentResult) -> list[str]:
    """Sites without a balanced accuracy, though they sent rows."""
    return [
        site.name
        for site in result.sites
        if site.rows and not any(np.isfinite(outcome.at_sites[site.name]) for outcome in result.variants)
    ]


def _site_cells(result: ExperimentResult, outcome: VariantResult, words: ClassWords) -> list[Cell]:
    reference = result.reference
    cells = []
    for site in result.sites:
        value = outcome.at_sites[site.name]
        if not np.isfinite(value):
            cells.append(Cell(NONE, note=_why(outcome, site.name, site.people, words)))
            continue
        difference = value - reference.at_sites[site.name]
        shown = outcome is not reference and np.isfinite(difference)
        cells.append(Cell(rounded(value, 2), value, signed(difference, 2) if shown else ""))
    note = ""
    if outcome is not reference and reference.folds:
        difference_of_all = result.difference(outcome, reference)
        note = difference_of_all.as_difference() if np.isfinite(difference_of_all.mean) else ""
    return [Cell(rounded(outcome.score.mean, 2), outcome.score.mean, note), *cells]


def _why(outcome: VariantResult, site: str, people: Mapping[int, int], words: ClassWords) -> str:
    """Reason for a dash."""
    if not at_site(outcome.folds, site):
        return "no row"
    absent = [(words.many if words.count == 2 else words.short)[code] for code in words.shown if not people[code]]
    return f"no {' or '.join(absent)}" if absent else "a class is missing"


def _cell(interval: Interval, *, marked: bool = False) -> Cell:
    if not np.isfinite(interval.mean):
        return Cell(NONE)
    bounds = f"{rounded(interval.low, interval.digits)} to {rounded(interval.high, interval.digits)}"
    return Cell(interval.text, interval.mean, bounds if interval.known and not interval.few else "", marked)


def _across(interval: Interval) -> Cell:
    """Of sites, few as they are: its width is the message."""
    if not np.isfinite(interval.mean):
        return Cell(NONE)
    bounds = f"{rounded(interval.low, 2)} to {rounded(interval.high, 2)}" if interval.known else ""
    return Cell(rounded(interval.mean, 2), interval.mean, bounds)
