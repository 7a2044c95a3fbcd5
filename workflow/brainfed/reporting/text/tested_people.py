"""Number of subjects behind a score: tested in a fold, and in an institution of a fold."""

from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class TestedPeople:
    """People tested, each as (median, fewest, most).

    Attributes:
        fold: in a fold of one repeat.
        institution: in one institution of a fold.
        runs: folds of all repeats.
        noun: what is tested.
        folds: whether a repeat has several.
        repeats: their number.
    """

    fold: tuple[int, int, int]
    institution: tuple[int, int, int]
    runs: int
    noun: str = "people"
    folds: bool = True
    repeats: int = 1

    @property
    def sentence(self) -> str:
        """How often each subject is tested, the number of tests, and their sizes."""
        tests = f"{self.runs} test{'s' if self.runs != 1 else ''} of {_range(self.fold)} {self.noun}"
        inside = "" if self.fold == self.institution else f", {_range(self.institution)} in each institution"
        pronoun = "it" if self.noun == "graphs" else "them"
        if not self.folds:
            return f"Scores are means over {tests}{inside}, by models that did not train on {pronoun}."
        each = "Every graph" if self.noun == "graphs" else "Everybody"
        often = {1: "once", 2: "twice"}.get(self.repeats, f"{self.repeats} times")
        return f"{each} is tested {often}, by a model that did not train on {pronoun}: {tests}{inside}."


def count_tested(splits: pd.DataFrame, noun: str = "people") -> TestedPeople:
    """Count the tested people of every fold.

    Args:
        splits: repeat, fold, institution, a row a tested subject.
        noun: what is tested.
    """
    folds = splits.groupby(["repeat", "fold"]).size()
    inside = splits.groupby(["repeat", "fold", "institution"]).size()
    several, repeats = splits["fold"].nunique() > 1, int(splits["repeat"].nunique())
    return TestedPeople(_spread(folds), _spread(inside), len(folds), noun, several, repeats)


def _spread(counts: "pd.Series[int]") -> tuple[int, int, int]:
    return round(float(np.median(counts))), int(counts.min()), int(counts.max())


def _range(counts: tuple[int, int, int]) -> str:
    median, fewest, most = counts
    return str(median) if fewest == most else f"{fewest} to {most}"
