"""Scores of all test subjects together: calibration, ROC curves, subgroups."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from sklearn.metrics import brier_score_loss
from statsmodels.stats.proportion import proportion_confint

from brainfed.runtime import Float64, IntArray

# Calibration of probabilities: calibration curve and Brier score.

CALIBRATION_COLUMNS = ("variant", "mean_score", "fraction_patients", "low", "high", "subjects")


def calibration_curve(predictions: pd.DataFrame, bins: int = 10, rows: int = 1) -> pd.DataFrame:
    """Predicted against observed share of patients, in bins of equal width over [0, 1].

    A subject is predicted once a repeat, so the interval counts a bin's predictions divided by the repeats (Wilson,
    95 %): repeats add no people.

    Args:
        predictions: variant, repeat, score, kind, label; all repeats and folds together. Margins are not
            probabilities and are left out.
        rows: rows that one prediction has, as of several classes against the rest: they count as one subject.

    Returns:
        `CALIBRATION_COLUMNS`: mean score and share of patients of each bin, bounds of the share, and the number of
        predictions a repeat.
    """
    scored = _probabilities(predictions)
    inner_edges = np.linspace(0, 1, bins + 1)[1:-1]
    scored = scored.assign(bin=np.searchsorted(inner_edges, scored["score"].to_numpy(), side="left"))
    means = {"mean_score": ("score", "mean"), "fraction_patients": ("label", "mean"), "subjects": ("label", "size")}
    table = scored.groupby(["variant", "bin"], sort=True).agg(**means).reset_index()
    repeats = scored.groupby("variant")["repeat"].nunique()
    subjects = table["subjects"] / table["variant"].map(repeats) / rows
    low, high = proportion_confint(table["fraction_patients"] * subjects, subjects, method="wilson")
    rank = {name: index for index, name in enumerate(scored["variant"].unique())}
    table = table.assign(low=low, high=high, subjects=subjects, rank=table["variant"].map(rank))
    order = table.sort_values(["rank", "bin"]).index
    return table.loc[order, list(CALIBRATION_COLUMNS)].reset_index(drop=True)


def brier_scores(predictions: pd.DataFrame) -> pd.DataFrame:
    """Mean squared error of the probabilities of each variant: variant, brier (0.25 is chance level)."""
    rows = [
        (variant, float(brier_score_loss(part["label"].astype("int64"), part["score"], pos_label=1)))
        for variant, part in _probabilities(predictions).groupby("variant", sort=False)
    ]
    return pd.DataFrame(rows, columns=["variant", "brier"])


def _probabilities(predictions: pd.DataFrame) -> pd.DataFrame:
    return predictions.loc[predictions["kind"] == "probability"].astype({"label": "float64"})


# The ROC curve of a variant, averaged vertically over institutions and runs (Fawcett 2006, Sec. 9).
#
# A curve ranks the tested subjects of one institution. Scores of different local models have no common scale, so
# subjects of two institutions are never ranked against each other.


@dataclass(frozen=True)
class MeanRoc:
    """A mean ROC curve on a grid.

    Attributes:
        fpr: false-positive rates: the origin of the plot, then 0 ... 1 evenly.
        tpr: mean over runs of the mean true-positive rate of the institutions, at each of these rates.
        sd: its standard deviation over runs; NaN for a single run.
        runs: number of runs with a curve; one in which no institution has both classes has none.
    """

    fpr: Float64
    tpr: Float64
    sd: Float64
    runs: int


def mean_roc(predictions: pd.DataFrame, points: int = 101) -> MeanRoc:
    """Average the curves of one variant's institutions, then those of its runs, at `points` evenly spaced rates."""
    grid = np.linspace(0, 1, points)
    curves = [np.append(0, curve) for _, curve in _curves(predictions, ["repeat", "fold"], grid)]
    fpr, unknown = np.append(0, grid), np.full(points + 1, np.nan)
    mean = np.mean(curves, axis=0) if curves else unknown
    sd = np.std(curves, axis=0, ddof=1) if len(curves) > 1 else unknown
    return MeanRoc(fpr, mean, sd, len(curves))


def _curves(
    predictions: pd.DataFrame, keys: list[str], grid: Float64
) -> Iterator[tuple[tuple[Hashable, ...], Float64]]:
    """Keys of every run, and the mean over its institutions with both classes of their curves on the grid."""
    for key, run in predictions.groupby(keys, sort=False):
        parts = [part for _, part in run.groupby("institution") if part["label"].nunique() == 2]
        if parts:
            rates = [roc(part["label"].to_numpy(np.int64), part["score"].to_numpy(np.float64)) for part in parts]
            # A vertical rise takes its upper end.
            yield key, np.mean([np.interp(grid, fpr, tpr) for fpr, tpr in rates], axis=0)


def roc(label: IntArray, score: Float64) -> tuple[Float64, Float64]:
    """False- and true-positive rates at every threshold, from (0, 0) to (1, 1) (Fawcett 2006, Algorithm 1).

    Labels (n,) are 1 for patients, 0 for controls, and both occur; equal scores (n,) are one threshold.
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

    Returns:
        variant, repeat, fold, value; a run in which no institution has both classes has no row.
    """
    keys, at = ["variant", "repeat", "fold"], np.array([round(1 - specificity, 12)])
    rows = [(*run, float(curve[0])) for run, curve in _curves(predictions, keys, at)]
    return pd.DataFrame(rows, columns=[*keys, "value"])


# AUC within groups of subjects: one sex, a third of the ages, one site.

REPLICATES, LEVEL, SEED = 1000, 0.95, 0
FEWEST = 10
"""Smallest number of patients, and of controls, of a group with an AUC."""
SUBGROUP_COLUMNS = ("variant", "property", "group", "subjects", "patients", "auc", "low", "high")


def group_labels(people: pd.DataFrame) -> dict[str, pd.Series]:
    """Property -> group of every subject that has a value: sex, thirds of age and of motion (mean_fd, mm), site.

    Thirds are those of the subjects given, so about as many are in each.
    """
    people = people.set_index("subject")
    groups = {}
    for title, column, unit in (("age", "age", "years"), ("motion", "mean_fd", "mm")):
        known = people[column].astype("float64").dropna() if column in people else pd.Series(dtype="float64")
        if known.nunique() >= 3:
            groups[title] = _thirds(known, unit)
    for title in ("sex", "site"):
        known = people[title].dropna().astype(str)
        if known.nunique() > 1:
            groups[title] = known.astype(pd.CategoricalDtype(sorted(set(known)), ordered=True))
    return {title: groups[title] for title in ("sex", "age", "motion", "site") if title in groups}


def _thirds(values: "pd.Series[float]", unit: str) -> pd.Series:
    """`8 to 12.5 years` of every value; equal values share a third."""
    third = pd.qcut(values, 3, labels=False, duplicates="drop")
    names = {number: f"{own.min():.3g} to {own.max():.3g} {unit}" for number, own in values.groupby(third)}
    order = pd.CategoricalDtype(list(dict.fromkeys(names.values())), ordered=True)
    return third.map(names).astype(order)


def subgroup_scores(predictions: pd.DataFrame, people: pd.DataFrame) -> pd.DataFrame:
    """AUC of every variant within every group, with a bootstrap interval over its subjects.

    A pair of a patient and a control counts where both were tested in one run at one institution, by the same model.
    The AUC is the share of pairs in which the patient scores higher, equal scores counting half.

    Args:
        predictions: subject, variant, repeat, fold, institution, score, label (1: patient).

    Returns:
        `SUBGROUP_COLUMNS`; a group of fewer than `FEWEST` patients or controls, or without a pair, has no row.
    """
    tested = people[people["subject"].isin(predictions["subject"])]
    groups = group_labels(tested)
    rows = []
    for variant, part in predictions.groupby("variant", sort=False):
        pairs = _Pairs(part)
        for title, labels in groups.items():
            for name in labels.cat.categories:
                counts, auc = pairs.within(set(labels.index[labels == name]))
                if min(counts) >= FEWEST and np.isfinite(auc[0]):
                    rows.append((variant, title, name, sum(counts), counts[0], *auc))
    return pd.DataFrame(rows, columns=list(SUBGROUP_COLUMNS))


class _Pairs:
    """Pairs of a patient and a control of one variant: how often tested together, how often in the right order."""

    def __init__(self, predictions: pd.DataFrame) -> None:
        sides = [predictions[predictions["label"] == label] for label in (1, 0)]
        self.patients, self.controls = (np.array(sorted(set(side["subject"]))) for side in sides)
        shape = len(self.patients), len(self.controls)
        self.together, self.right = np.zeros(shape), np.zeros(shape)
        for _, run in predictions.groupby(["repeat", "fold", "institution"]):
            above, below = run[run["label"] == 1], run[run["label"] == 0]
            rows = np.searchsorted(self.patients, above["subject"].to_numpy())
            columns = np.searchsorted(self.controls, below["subject"].to_numpy())
            high, low = above["score"].to_numpy()[:, None], below["score"].to_numpy()[None]
            self.together[np.ix_(rows, columns)] += 1
            self.right[np.ix_(rows, columns)] += (high > low) + 0.5 * (high == low)

    def within(self, subjects: set[str]) -> tuple[tuple[int, int], tuple[float, float, float]]:
        """Numbers of patients and controls among `subjects`; AUC and its bounds (NaN without a pair)."""
        rows, columns = (np.isin(side, list(subjects)) for side in (self.patients, self.controls))
        together, right = self.together[np.ix_(rows, columns)], self.right[np.ix_(rows, columns)]
        counts = int(rows.sum()), int(columns.sum())
        if not together.sum():
            return counts, (np.nan, np.nan, np.nan)
        tail, sampled = (1 - LEVEL) / 2, _draws(*counts)
        with np.errstate(invalid="ignore"):
            drawn = _sums(right, *sampled) / _sums(together, *sampled)
        low, high = np.nanquantile(drawn, [tail, 1 - tail])
        return counts, (float(right.sum() / together.sum()), float(low), float(high))


def _sums(pairs: Float64, patients: Float64, controls: Float64) -> Float64:
    """Sum of the pairs of every replicate, from how often it has each patient and each control."""
    return np.asarray(((patients @ pairs) * controls).sum(axis=1))


@cache
def _draws(patients: int, controls: int) -> tuple[Float64, Float64]:
    """How often each patient (replicates, patients) and each control (replicates, controls) is drawn."""
    rng = np.random.default_rng(SEED)
    of_patients, of_controls = np.empty((REPLICATES, patients)), np.empty((REPLICATES, controls))
    for replicate in range(REPLICATES):
        of_patients[replicate] = rng.multinomial(patients, np.full(patients, 1 / patients))
        of_controls[replicate] = rng.multinomial(controls, np.full(controls, 1 / controls))
    return of_patients, of_controls
