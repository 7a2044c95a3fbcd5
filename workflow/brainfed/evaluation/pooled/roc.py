"""The ROC curve of a variant, averaged vertically over institutions and runs (Fawcett 2006, Sec. 9).

A curve ranks the tested subjects of one institution. Scores of different local models have no common scale, so subjects
of two institutions are never ranked against each other.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

FloatVector = NDArray[np.float64]


@dataclass(frozen=True)
class MeanRoc:
    """A mean ROC curve on a grid.

    Attributes:
        fpr: false-positive rates: the origin of the plot, then 0 ... 1 evenly.
        tpr: mean over runs of the mean true-positive rate of the institutions, at each of these rates.
        sd: its standard deviation over runs; NaN for a single run.
        runs: number of runs with a curve; one in which no institution has both classes has none.
    """

    fpr: FloatVector
    tpr: FloatVector
    sd: FloatVector
    runs: int


def mean_roc(predictions: pd.DataFrame, points: int = 101) -> MeanRoc:
    """Average the curves of one variant's institutions, then those of its runs.

    Args:
        predictions: repeat, fold, institution, score, label of one variant.
        points: number of evenly spaced rates, 0 and 1 included.
    """
    grid = np.linspace(0, 1, points)
    found = [np.append(0, curve) for _, curve in _curves(predictions, ["repeat", "fold"], grid)]
    fpr = np.append(0, grid)
    if not found:
        return MeanRoc(fpr, np.full(points + 1, np.nan), np.full(points + 1, np.nan), 0)
    curves = np.stack(found)
    sd = curves.std(axis=0, ddof=1) if len(curves) > 1 else np.full(points + 1, np.nan)
    return MeanRoc(fpr, curves.mean(axis=0), sd, len(curves))


def _curves(
    predictions: pd.DataFrame, keys: list[str], grid: FloatVector
) -> Iterator[tuple[tuple[Hashable, ...], FloatVector]]:
    """Keys of every run, and the mean over its institutions with both classes of their curves on the grid."""
    for key, run in predictions.groupby(keys, sort=False):
        parts = [part for _, part in run.groupby("institution") if part["label"].nunique() == 2]
        if parts:
            yield key, np.mean([_interpolated(part, grid) for part in parts], axis=0)


def _interpolated(part: pd.DataFrame, grid: FloatVector) -> FloatVector:
    """The curve of one institution's subjects on the grid; a vertical rise takes its upper end."""
    fpr, tpr = roc(part["label"].to_numpy(dtype=np.int64), part["score"].to_numpy(dtype=np.float64))
    return np.asarray(np.interp(grid, fpr, tpr), dtype=np.float64)


def roc(label: NDArray[np.int64], score: FloatVector) -> tuple[FloatVector, FloatVector]:
    """False- and true-positive rates at every threshold, from (0, 0) to (1, 1) (Fawcett 2006, Algorithm 1).

    Args:
        label: (n,) 1 patient, 0 control; both occur.
        score: (n,); equal scores are one threshold.
    """
    order = np.argsort(-score, kind="stable")
    falling, is_patient = score[order], label[order] == 1
    last = np.flatnonzero(np.append(falling[1:] != falling[:-1], True))
    patients = np.append(0, np.cumsum(is_patient)[last])
    called = np.append(0, last + 1)
    return (called - patients) / (len(label) - patients[-1]), patients / patients[-1]


def sensitivities(predictions: pd.DataFrame, specificity: float) -> pd.DataFrame:
    """True-positive rate of every run where the curves of its institutions have this specificity, their mean.

    The threshold of an institution is read off the curve of its tested subjects themselves, so it describes the curve:
    it is no threshold that anybody could have set before.

    Args:
        predictions: variant, repeat, fold, institution, score, label.
        specificity: 1 - false-positive rate, between 0 and 1.

    Returns:
        variant, repeat, fold, value; a run in which no institution has both classes has no row.
    """
    keys, at = ["variant", "repeat", "fold"], np.array([round(1 - specificity, 12)])
    rows = [(*run, float(curve[0])) for run, curve in _curves(predictions, keys, at)]
    return pd.DataFrame(rows, columns=[*keys, "value"])
