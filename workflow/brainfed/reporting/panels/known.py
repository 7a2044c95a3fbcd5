"""What is known of one experiment: its tables, tests, answer and pictures, computed once for all panels."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from brainfed.cohort.class_words import ClassWords
from brainfed.evaluation.scores import INSTITUTION
from brainfed.reporting.outline import CohortOutline, ExperimentOutline
from brainfed.reporting.page_tests import PageTests
from brainfed.reporting.pictures import Picture, read_pictures
from brainfed.reporting.scored import Scored, read_scored, read_splits
from brainfed.reporting.tables.scores import SCOPE_TITLES, without_effect
from brainfed.reporting.text.answer import Answer, find_answer
from brainfed.reporting.text.baselines import MethodBeside, find_beside
from brainfed.reporting.text.null_control import permutation_means
from brainfed.reporting.text.tested_people import TestedPeople, count_tested


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
    """Read one experiment's tables and embed its figures.

    Args:
        cohort: outline of its cohort.
        outline: the experiment.
        captions: figure -> its caption.
    """
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
