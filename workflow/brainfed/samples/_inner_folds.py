"""Choice of a penalty on the training subjects.

Rows with identical features are one person in the cohort twice. They stay on one side of every inner split, like in
the outer one.
"""

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.model_selection import StratifiedKFold

from brainfed.runtime import Float64, FloatArray, IntArray
from brainfed.samples._inputs import MethodInputs

INNER_FOLDS = 5

Margins = Callable[[float, IntArray, IntArray], Float64]
Loss = Callable[[IntArray, Float64], float]


def duplicate_groups(features: FloatArray) -> IntArray:
    """(n,) position of the first row that is identical to each row of the features (n, d)."""
    first: dict[bytes, int] = {}
    return np.array(
        [first.setdefault(row.tobytes(), position) for position, row in enumerate(features)], dtype=np.int64
    )


def inner_folds(labels: IntArray, duplicates: IntArray, seed: int) -> IntArray:
    """(n,) inner fold of each training subject, stratified by label.

    At most 5 folds, and at most as many as the rarer class has subjects; a single fold 0 if the
    rarer class has one subject only.
    """
    people = np.flatnonzero(duplicates == np.arange(len(duplicates)))
    smallest = int(np.bincount(labels[people], minlength=2).min())
    fold = np.zeros(len(labels), dtype=np.int64)
    if smallest >= 2:
        splitter = StratifiedKFold(min(INNER_FOLDS, smallest), shuffle=True, random_state=seed % 2**32)
        for index, (_, held_out) in enumerate(splitter.split(people, labels[people])):
            fold[people[held_out]] = index
    return fold[duplicates]


def institution_folds(inputs: MethodInputs, fold: int) -> IntArray:
    """(n,) inner fold of each training subject of `fold`, dealt by every institution alone; -1 for all others.

    Each institution deals its people of one class after the other, so that rare classes share folds as well as common
    ones. Duplicates are those of the first view.
    """
    inner = np.full(len(inputs.subjects), -1)
    for code, name in enumerate(inputs.institutions):
        own = np.flatnonzero((inputs.institution == code) & inputs.training(fold))
        duplicates = duplicate_groups(first_view(inputs, fold)[own])
        people = np.flatnonzero(duplicates == np.arange(len(own)))
        random = inputs.streams.numpy("inner folds of institutions", name, fold)
        labels = inputs.labels[fold, own[people]]
        dealt = np.concatenate([random.permutation(people[labels == label]) for label in np.unique(labels)] or [people])
        place = np.zeros(len(own), dtype=np.int64)
        place[dealt] = np.arange(len(dealt)) % INNER_FOLDS
        inner[own] = place[duplicates]
    return inner


def first_view(inputs: MethodInputs, fold: int) -> FloatArray:
    """(n, d) columns that distinguish duplicates: all, or those of the first view, which no subject lacks."""
    features = inputs.fold_features(fold)
    return features[:, inputs.views[0].columns] if inputs.views else features


def choose_cost(costs: Sequence[float], labels: IntArray, fold: IntArray, margins: Margins, loss: Loss) -> float:
    """The cost with the smallest mean loss over the inner folds, the strongest penalty among ties.

    Args:
        costs: ascending.
        labels: (n,) in {0, 1}.
        fold: (n,) inner folds; with a single one, the strongest penalty is taken.
        margins: (cost, training positions, held-out positions) -> margins of the held-out subjects.
        loss: (labels, margins) of the held-out subjects -> their mean loss.
    """
    if len(costs) == 1 or fold.max() == 0:
        return costs[0]
    splits = [(np.flatnonzero(fold != index), np.flatnonzero(fold == index)) for index in range(int(fold.max()) + 1)]
    losses = [
        np.mean([loss(labels[held_out], margins(cost, kept, held_out)) for kept, held_out in splits]) for cost in costs
    ]
    return costs[int(np.argmin(losses))]
