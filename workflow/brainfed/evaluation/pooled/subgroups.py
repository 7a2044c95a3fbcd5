"""AUC within groups of subjects: one sex, a third of the ages, one site."""

from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

REPLICATES, LEVEL, SEED = 1000, 0.95, 0
FEWEST = 10
"""Smallest number of patients, and of controls, of a group with an AUC."""
SUBGROUP_COLUMNS = ("variant", "property", "group", "subjects", "patients", "auc", "low", "high")
Float64 = NDArray[np.float64]


def group_labels(people: pd.DataFrame) -> dict[str, pd.Series]:
    """Property -> group of every subject that has a value: sex, thirds of age and of motion, site.

    Thirds are those of the subjects given, so about as many are in each.

    Args:
        people: subject, site, age, sex, mean_fd (mm); one row a subject.
    """
    people = people.set_index("subject")
    found = {}
    for title, column, unit in (("age", "age", "years"), ("motion", "mean_fd", "mm")):
        known = people[column].astype("float64").dropna() if column in people else pd.Series(dtype="float64")
        if known.nunique() >= 3:
            found[title] = _thirds(known, unit)
    for title in ("sex", "site"):
        known = people[title].dropna().astype(str)
        if known.nunique() > 1:
            found[title] = known.astype(pd.CategoricalDtype(sorted(set(known)), ordered=True))
    return {title: found[title] for title in ("sex", "age", "motion", "site") if title in found}


def _thirds(values: "pd.Series[float]", unit: str) -> pd.Series:
    """`8 to 12.5 years` of every value; equal values share a third."""
    third = pd.qcut(values, 3, labels=False, duplicates="drop")
    names = {
        number: f"{values[third == number].min():.3g} to {values[third == number].max():.3g} {unit}"
        for number in sorted(set(third))
    }
    order = pd.CategoricalDtype(list(dict.fromkeys(names.values())), ordered=True)
    return third.map(names).astype(order)


def subgroup_scores(predictions: pd.DataFrame, people: pd.DataFrame) -> pd.DataFrame:
    """AUC of every variant within every group, with a bootstrap interval over its subjects.

    A pair of a patient and a control counts where both were tested in one run at one institution, by the same model.
    The AUC is the share of pairs in which the patient scores higher, equal scores counting half.

    Args:
        predictions: subject, variant, repeat, fold, institution, score, label (1: patient).
        people: as in `group_labels`.

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
                counts, found = pairs.within(set(labels.index[labels == name]))
                if min(counts) >= FEWEST and np.isfinite(found[0]):
                    rows.append((variant, title, name, sum(counts), counts[0], *found))
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
    drawn = [
        (
            rng.multinomial(patients, np.full(patients, 1 / patients)),
            rng.multinomial(controls, np.full(controls, 1 / controls)),
        )
        for _ in range(REPLICATES)
    ]
    of_patients, of_controls = zip(*drawn, strict=True)
    return np.array(of_patients, dtype=np.float64), np.array(of_controls, dtype=np.float64)
