"""What the page on a study between sites shows: the sites' counts, and what the study's config says."""

from collections.abc import Mapping
from dataclasses import dataclass

from brainfed.cohort.classes import ClassWords
from brainfed.evaluation.site_counts import TestedFold
from brainfed.reporting.variants import ShownVariant


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
class StudyFacts:
    """How a study ran.

    Attributes:
        digest: of the study, as the coordinator prints it.
        steps: rounds and sums.
        masked: whether the coordinator saw only sums where a method needs no more.
        sets: number of different sets of each site's subjects of which exact numbers were added up.
        epsilon: bound for one subject over all private trainings, as the study's file states it; 0 without private
            variants.
        secret_noise: whether protective noise was keyed by secrets of the sites.
        ended: day and time.
        ledger: file at each site that lists what left it.
        config: the study's file.
    """

    digest: str
    steps: int
    masked: bool
    sets: int
    epsilon: float
    secret_noise: bool
    ended: str
    ledger: str
    config: str


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
        study: how it ran.
    """

    project: str
    words: ClassWords
    kind: str
    simulated: bool
    sites: tuple[str, ...]
    fewest: int
    experiments: tuple[OutcomeExperiment, ...]
    counts: Mapping[str, list[TestedFold]]
    study: StudyFacts

    @property
    def noun(self) -> str:
        """What is tested."""
        return "graphs" if self.words.subjects == "graphs" else "people"
