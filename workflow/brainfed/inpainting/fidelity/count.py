"""Predicted against true numbers of missing neighbours."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from brainfed.graphs.neighbours.search import Edges
from brainfed.inpainting.fidelity.estimate import estimate, ratio
from brainfed.inpainting.fusing.fused import FusedGraph
from brainfed.inpainting.inputs import InpaintingInputs

FloatVector = NDArray[np.float64]

BINS = 10


@dataclass(frozen=True)
class Correlation:
    """Correlation of a predictor with the true number; None where one is constant, or for fewer than two subjects."""

    pearson: float | None
    spearman: float | None


@dataclass(frozen=True)
class CalibrationBin:
    """Subjects with predictions in one tenth of all predictions; equal predictions share a bin.

    Attributes:
        predicted: mean predicted number.
        true: mean true number.
        error: standard error of `true` over the bin's subjects; None for a single one.
        subjects: number of subjects.
    """

    predicted: float
    true: float
    error: float | None
    subjects: int


@dataclass(frozen=True)
class CountFidelity:
    """Predicted number c_i (before rounding and cap) against the true number t_i = |T_i|, over fitted subjects.

    Under `count: printed` c_i stays on the scale of masks that hide 10-15 % of an institution, whereas the cut removes
    about (M - 1) / M of the neighbours: expect a ratio far below 1. Correlation does not depend on it.

    Attributes:
        subjects: number of subjects.
        predicted_mean: mean of c_i; None without subjects.
        true_mean: mean of t_i; None without subjects.
        generated_mean: generated nodes a subject, after rounding and cap; None without subjects.
        ratio_predicted: sum c_i / sum t_i; None if nothing is missing.
        ratio_generated: generated nodes / sum t_i; None if nothing is missing.
        predicted: correlation of c_i with t_i.
        visible_degree: the baseline, correlation of the number of visible neighbours with t_i.
        calibration: at most ten bins by deciles of c_i, ascending; calibrated where `true` = `predicted`.
    """

    subjects: int
    predicted_mean: float | None
    true_mean: float | None
    generated_mean: float | None
    ratio_predicted: float | None
    ratio_generated: float | None
    predicted: Correlation
    visible_degree: Correlation
    calibration: tuple[CalibrationBin, ...]


def compare_counts(inputs: InpaintingInputs, fused: FusedGraph, cut: Edges) -> CountFidelity:
    """Score the predicted numbers of missing neighbours."""
    fitted, nodes = inputs.fitted, len(inputs.fitted)
    predicted = fused.count[fitted]
    true = np.bincount(cut.row, minlength=nodes)[fitted].astype(np.float64)
    others = inputs.graph.row != inputs.graph.column
    degree = np.bincount(inputs.graph.row[others], minlength=nodes)[fitted].astype(np.float64)
    generated = len(fused.parent)
    return CountFidelity(
        subjects=len(predicted),
        predicted_mean=estimate(predicted).mean,
        true_mean=estimate(true).mean,
        generated_mean=ratio(generated, len(predicted)),
        ratio_predicted=ratio(predicted.sum(), true.sum()),
        ratio_generated=ratio(generated, true.sum()),
        predicted=_correlation(predicted, true),
        visible_degree=_correlation(degree, true),
        calibration=_calibration(predicted, true),
    )


def _correlation(first: FloatVector, second: FloatVector) -> Correlation:
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return Correlation(None, None)
    return Correlation(float(stats.pearsonr(first, second).statistic), float(stats.spearmanr(first, second).statistic))


def _calibration(predicted: FloatVector, true: FloatVector) -> tuple[CalibrationBin, ...]:
    if not len(predicted):
        return ()
    edges = np.unique(np.quantile(predicted, np.arange(1, BINS) / BINS))
    place = np.searchsorted(edges, predicted, side="left")
    return tuple(_bin(predicted[place == index], true[place == index]) for index in np.unique(place))


def _bin(predicted: FloatVector, true: FloatVector) -> CalibrationBin:
    return CalibrationBin(float(predicted.mean()), float(true.mean()), estimate(true).error, len(predicted))
