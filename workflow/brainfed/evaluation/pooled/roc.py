"""The ROC curve of a variant, averaged vertically over runs (Fawcett 2006, Sec. 9)."""

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
        tpr: mean true-positive rate at each of these rates.
        sd: its standard deviation over runs; NaN for a single run.
        runs: number of runs with a curve; a run with one class has none.
    """

    fpr: FloatVector
    tpr: FloatVector
    sd: FloatVector
    runs: int


def mean_roc(predictions: pd.DataFrame, points: int = 101) -> MeanRoc:
    """Average the pooled curves of one variant's runs.

    Args:
        predictions: repeat, fold, score, label of one variant.
        points: number of evenly spaced rates, 0 and 1 included.
    """
    grid = np.linspace(0, 1, points)
    runs = [run for _, run in predictions.groupby(["repeat", "fold"]) if run["label"].nunique() == 2]
    fpr = np.append(0, grid)
    if not runs:
        return MeanRoc(fpr, np.full(points + 1, np.nan), np.full(points + 1, np.nan), 0)
    curves = np.stack([np.append(0, _interpolated(run, grid)) for run in runs])
    sd = curves.std(axis=0, ddof=1) if len(runs) > 1 else np.full(points + 1, np.nan)
    return MeanRoc(fpr, curves.mean(axis=0), sd, len(runs))


def _interpolated(run: pd.DataFrame, grid: FloatVector) -> FloatVector:
    """The run's curve on the grid; a vertical rise takes its upper end."""
    fpr, tpr = roc(run["label"].to_numpy(dtype=np.int64), run["score"].to_numpy(dtype=np.float64))
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
    """True-positive rate of every run where its curve has this specificity.

    The threshold is read off the curve of the tested subjects themselves, so it describes the curve: it is no threshold
    that anybody could have set before.

    Args:
        predictions: variant, repeat, fold, score, label.
        specificity: 1 - false-positive rate, between 0 and 1.

    Returns:
        variant, repeat, fold, value; a run with one class has no row.
    """
    at = np.array([round(1 - specificity, 12)])
    rows = [
        (variant, repeat, fold, float(_interpolated(run, at)[0]))
        for (variant, repeat, fold), run in predictions.groupby(["variant", "repeat", "fold"], sort=False)
        if run["label"].nunique() == 2
    ]
    return pd.DataFrame(rows, columns=["variant", "repeat", "fold", "value"])
