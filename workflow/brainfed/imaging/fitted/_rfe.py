"""Recursive feature elimination with a ridge classifier (FedNI Sec. III-A; Parisot et al. 2018, Sec. 2.3).

Each step fits the classifier and drops the tenth of the features with the smallest weights. With d >> n the
ridge weights are exact in n dimensions: w = Z' (Z Z' + I)^-1 t; dropping features subtracts their part from
the (n, n) Gram matrix. The labels are those of a fold's training subjects only.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve

from brainfed.federation import Ledger, record_downloads, record_uploads
from brainfed.runtime import FloatArray, IntArray, UserError

PENALTY = 1.0
"""Penalty of the ridge classifier on z-scored features, scikit-learn's default."""

DROPPED = 0.1
"""Share of the remaining features that a step drops; at least one is dropped."""

INDEX_BYTES = 4
"""Bytes of a rank or the number of a feature, int32."""

CROSSES = {"feature-rank": ("features",), "selected-features": ("selected",)}


@dataclass(frozen=True)
class Selection:
    """Selected features, and the data that left the institutions for the selection.

    Attributes:
        columns: (selected,) ascending.
        crossings: rows of the ledger.
    """

    columns: IntArray
    crossings: tuple[dict[str, int | str], ...]


def both_classes(labels: IntArray) -> bool:
    """Whether two classes or more have labelled subjects; -1 is no label."""
    return len(np.unique(labels[labels >= 0])) > 1


def elimination_ranks(features: FloatArray, labels: IntArray) -> IntArray:
    """Rank (d,) of every feature; 0 is kept longest.

    Features dropped in one step are ranked by their weight in it, so an elimination down to k keeps the
    features of rank below k.

    Args:
        features: (n, d) of training subjects; z-scored here with their own moments.
        labels: (n,) in {0, ..., C - 1}, two of them present or more; of more, every class has a classifier against
            the rest, and a feature's weight is the norm of its weights in them.
    """
    mean, deviation = features.mean(axis=0, dtype=np.float64), features.std(axis=0, dtype=np.float64)
    columns = ((features - mean) / np.where(np.ptp(features, axis=0) == 0, 1.0, deviation)).T.copy()
    present = np.unique(labels)
    classes = present[1:] if len(present) == 2 else present
    targets = 2.0 * (labels[:, None] == classes) - 1.0
    targets -= targets.mean(axis=0)
    targets = targets[:, 0] if len(classes) == 1 else targets
    gram = columns.T @ columns
    ridge = PENALTY * np.eye(len(gram))
    remaining = np.arange(len(columns))
    ranks = np.empty(len(columns), dtype=np.int64)
    while len(remaining):
        weights = columns @ solve(gram + ridge, targets, assume_a="pos")
        size = np.abs(weights) if weights.ndim == 1 else np.linalg.norm(weights, axis=1)
        order = np.argsort(size, kind="stable")
        count = max(1, int(DROPPED * len(remaining)))
        dropped, kept = order[:count], np.sort(order[count:])
        ranks[remaining[dropped]] = len(remaining) - 1 - np.arange(count)
        gram -= columns[dropped].T @ columns[dropped]
        remaining, columns = remaining[kept], columns[kept]
    return ranks


def select_features(features: FloatArray, labels: IntArray, institution: IntArray, selected: int) -> Selection:
    """Select the features with the best mean rank over institutions, each of which ranks on its training subjects.

    Institutions with both classes have equal weights; one number a feature leaves each. Central
    methods use the same features, so that methods are compared on one input.

    Args:
        features: (n, d) of all subjects.
        labels: (n,) in {0, ..., C - 1}; -1: the label must not be used.
        institution: (n,) codes.

    Raises:
        UserError: there are fewer features than `selected`, or no institution has both classes.
    """
    dimensions = features.shape[1]
    if selected > dimensions:
        raise UserError(
            f"features.selected: expected at most {dimensions}, the number of features, found {selected}; lower it."
        )
    ledger = Ledger(CROSSES, {"features": dimensions, "selected": selected}, "features")
    ranks = []
    for code in np.unique(institution).tolist():
        members = np.flatnonzero(institution == code)
        own = members[labels[members] >= 0]
        if both_classes(labels[own]):
            ranks.append(elimination_ranks(features[own], labels[own]))
            record_uploads(ledger, {code: len(members)}, {"feature-rank": ((dimensions,), INDEX_BYTES)})
        record_downloads(ledger, {code: len(members)}, {"selected-features": ((selected,), INDEX_BYTES)})
    if not ranks:
        raise UserError(
            "features.selection: expected an institution with training subjects of both diagnoses, found none; "
            "use fewer institutions, or `selection: none`."
        )
    best = np.argsort(np.mean(ranks, axis=0), kind="stable")[:selected]
    return Selection(np.sort(best), ledger.rows())
