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
    """

    fold: tuple[int, int, int]
    institution: tuple[int, int, int]
    runs: int
    noun: str = "people"
    folds: bool = True

    @property
    def sentence(self) -> str:
        """Number of tested subjects of a fold and of one institution, and number of runs."""
        people = f"A {'fold' if self.folds else 'repeat'} tests {_range(self.fold)} {self.noun}"
        inside = "" if self.fold == self.institution else f", {_range(self.institution)} of them in one institution"
        return f"{people}{inside}; the scores are means over {self.runs} run{'s' if self.runs != 1 else ''}."


def count_tested(splits: pd.DataFrame, noun: str = "people") -> TestedPeople:
    """Count the tested people of every fold.

    Args:
        splits: repeat, fold, institution, a row a tested subject.
        noun: what is tested.
    """
    folds = splits.groupby(["repeat", "fold"]).size()
    inside = splits.groupby(["repeat", "fold", "institution"]).size()
    return TestedPeople(_spread(folds), _spread(inside), len(folds), noun, splits["fold"].nunique() > 1)


def _spread(counts: "pd.Series[int]") -> tuple[int, int, int]:
    return round(float(np.median(counts))), int(counts.min()), int(counts.max())


def _range(counts: tuple[int, int, int]) -> str:
    median, fewest, most = counts
    return str(median) if fewest == most else f"{median} ({fewest} to {most})"
