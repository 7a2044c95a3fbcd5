"""What is known of one experiment: its tables, tests, answer and pictures, computed once for all panels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import pandas as pd

from brainfed.cohort import ClassWords
from brainfed.evaluation import INSTITUTION
from brainfed.reporting import (
    CohortOutline,
    ExperimentOutline,
    PageTests,
    Picture,
    Scored,
    ShownVariant,
    read_cohort,
    read_pictures,
    read_scored,
    read_splits,
    used,
)
from brainfed.reporting.tables import SCOPE_TITLES, crossings_of, read_leaks, spent, without_effect
from brainfed.reporting.text import (
    Answer,
    MethodBeside,
    Situation,
    TestedPeople,
    count_tested,
    find_answer,
    find_beside,
    permutation_means,
)


@dataclass(frozen=True)
class Known:
    """One experiment of one cohort.

    Attributes:
        cohort: outline of the cohort.
        outline: outline of the experiment.
        summary: variant, scope, metric, mean, sd, sd_of_repeats, undefined.
        differences: the tests against the reference.
        gain: `scores.GAIN_COLUMNS`.
        scored: all runs.
        compared: every comparison of the page, with one p each.
        answer: the best federated method, and what it is compared with.
        beside: methods beside those that their papers compare them with.
        null: mean AUC of every permutation, under shuffled labels; None under true ones.
        institutions: their number in a repeat.
        runs: number of test folds over all repeats.
        tested: number of subjects behind a score.
        pictures: pictures by name.
    """

    cohort: CohortOutline
    outline: ExperimentOutline
    summary: pd.DataFrame
    differences: pd.DataFrame
    gain: pd.DataFrame
    scored: Scored
    compared: PageTests
    answer: Answer
    beside: list[MethodBeside]
    null: pd.DataFrame | None
    institutions: int
    runs: int
    tested: TestedPeople
    pictures: Mapping[str, Picture]

    @property
    def words(self) -> ClassWords:
        """Nouns of the cohort."""
        return self.cohort.words

    @property
    def scopes(self) -> dict[str, str]:
        """Scope of the tables -> its title."""
        pooled = self.outline.pooled and not self.answer.unseen
        shown = list(SCOPE_TITLES) if pooled else [INSTITUTION]
        return {scope: SCOPE_TITLES[scope].replace("subjects", self.words.subjects) for scope in shown}

    @cached_property
    def idle(self) -> list[str]:
        """Sentences on settings that changed nothing: their differences of 0 are no result."""
        return without_effect(self.outline.variants, self.scored)

    @property
    def picture(self) -> Picture | None:
        """The figure that repeats one of a paper; a group's first experiment has it."""
        return self.pictures.get(self.outline.figure)

    @property
    def finding(self) -> str:
        """What that figure shows; empty without one."""
        return self.picture.finding if self.picture else ""


def read_known(cohort: CohortOutline, outline: ExperimentOutline, captions: Mapping[str, str]) -> Known:
    """Read one experiment's tables and embed its figures with their captions."""
    summary, differences, gain = (pd.read_csv(outline.tables[name], sep="\t") for name in ("summary", "tests", "gain"))
    splits, scored = read_splits(outline), read_scored(outline)
    compared = PageTests(scored, outline.variants, outline.reference)
    return Known(
        cohort=cohort,
        outline=outline,
        summary=summary,
        differences=differences,
        gain=gain,
        scored=scored,
        compared=compared,
        answer=find_answer(compared),
        beside=find_beside(compared),
        null=permutation_means(scored.runs, outline.variants) if outline.labels == "permuted" else None,
        institutions=int(splits["institution"].nunique()),
        runs=len(splits[["repeat", "fold"]].drop_duplicates()),
        tested=count_tested(splits, "graphs" if cohort.kind == "graphs" else "people"),
        pictures=read_pictures(outline.figures, captions, f"cohort {cohort.name}, experiment {outline.name}"),
    )


# A part of the page that applies to some experiments: it finds its own content, and has a template that prints it.


class Place(StrEnum):
    """Where a panel stands on the page, in the order of the page."""

    LEARNING = "learning"
    OPENING = "opening"
    BEFORE_SCORES = "before scores"
    SCORES = "scores"
    AFTER_SCORES = "after scores"
    EXPLANATION = "explanation"
    BESIDE_PAPER = "beside the paper"
    TRAFFIC = "traffic"
    PRIVACY = "privacy"
    LEAKAGE = "leakage"
    COST = "cost"
    PROVENANCE = "provenance"


RESULTS = (
    Place.OPENING, Place.BEFORE_SCORES, Place.SCORES, Place.AFTER_SCORES, Place.EXPLANATION, Place.BESIDE_PAPER,
)  # fmt: skip
"""Places of the section Results."""


@dataclass(frozen=True)
class Panel:
    """One kind of part.

    Attributes:
        name: unique among all panels.
        place: on the page. `PRIVACY` is printed once a page, by the first experiment to which the panel applies;
            everything else is of one experiment.
        content: what the template prints of an experiment, or None where the panel does not apply.
        template: name of the template, which reads `content`, `experiment` (the section), `chapter` and `parts`.
    """

    name: str
    place: Place
    content: Callable[[Known], object | None]
    template: str


@dataclass(frozen=True)
class ShownPanel:
    """A panel that applies to an experiment, with its content."""

    panel: Panel
    content: object


def applicable(panels: Sequence[Panel], known: Known) -> list[ShownPanel]:
    """The panels that apply to an experiment, in the order given; an empty list or text as content is none."""
    return [ShownPanel(panel, content) for panel in panels if (content := panel.content(known))]


# What the first screen says beside the answer: on whom, what the method recognises, what it gives away.


def situation(known: Known, site: str = "") -> Situation:
    """The situation of an experiment; `site`: of a study between sites, the one whose report it is."""
    split, cohort = known.outline.split, known.cohort
    left_out = split["validation"] == "leave_one_site_out"
    chosen, leak = known.answer.chosen, None
    analysed = used(read_cohort(cohort.participants, cohort.included, cohort.measures))
    tested = analysed["subject"].isin(read_splits(known.outline)["subject"]) & (analysed["diagnosis"] >= 0)
    kept = analysed[tested]
    counts = int((kept["diagnosis"] == 0).sum()), int((kept["diagnosis"] == 1).sum())
    if chosen is not None and "audit" in known.outline.tables and not left_out:
        leaks = read_leaks([chosen], known.outline.tables["summary"], known.outline.tables["audit"])
        leak = next(((row.auc, row.low, row.high) for row in leaks), None)
    return Situation(
        kind=cohort.kind,
        institutions=known.institutions,
        drawn="sites" if left_out else split["institutions"],
        subjects=_subjects(known, kept, len(analysed)),
        tested=known.tested,
        shares=_recognised(known, chosen.name) if chosen is not None and known.words.count == 2 else None,
        leak=leak,
        guaranteed=bool(chosen is not None and spent(chosen)),
        leaves=_subject_tensors(chosen) if chosen is not None else (),
        shared_graph=tuple(dict.fromkeys(each.title for each in known.outline.variants if _shares_a_graph(each))),
        counts=counts if known.words.count == 2 and cohort.kind != "graphs" else None,
        site=site,
    )


def _subject_tensors(chosen: ShownVariant) -> tuple[str, ...]:
    """Tensors with an axis of subjects that the method sends, each once."""
    return tuple(dict.fromkeys(crossing.name for crossing in crossings_of(chosen) if crossing.patient_level))


def _shares_a_graph(variant: ShownVariant) -> bool:
    """Whether data of single subjects leave for a graph over institutions, of a federation that is no control."""
    if variant.family != "federated" or variant.is_control or variant.is_poisoned:
        return False
    return any(each.patient_level and each.stage == "graph" for each in crossings_of(variant))


def _subjects(known: Known, kept: pd.DataFrame, analysed: int) -> str:
    """`1,035 people of 20 sites (505 patients, 530 controls)`: those that a fold tests."""
    words = known.words
    counts = ", ".join(f"{(kept['diagnosis'] == code).sum():,} {words.many[code]}" for code in words.shown)
    noun = "simulated people" if known.cohort.source == "simulate" else known.tested.noun
    many = f"{len(kept):,}" if len(kept) == analysed else f"{len(kept):,} of {analysed:,} analysed"
    sites = kept["site"].nunique()
    return f"{many} {noun} of {sites} {words.site}{'' if sites == 1 else 's'} ({counts})"


def _recognised(known: Known, variant: str) -> tuple[float, float] | None:
    """Mean share of patients found and of controls cleared, over institutions and runs."""
    table: pd.DataFrame = known.summary
    chosen = table[(table["variant"] == variant) & (table["scope"] == INSTITUTION)].set_index("metric")["mean"]
    recall, specificity = (float(chosen.get(metric, float("nan"))) for metric in ("recall", "specificity"))
    return (recall, specificity) if pd.notna(recall) and pd.notna(specificity) else None
