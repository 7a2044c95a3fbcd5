"""Krum and multi-Krum (Blanchard et al. 2017): models that lie near others.

The score of a model is the sum of its squared distances to the m - f - 2 nearest others of m models, of which f are
taken for poisoned; it has one neighbour at least. The guarantee needs m >= 2 f + 3. Multi-Krum averages the m - f
models of the smallest scores.
"""

import torch
from torch import Tensor

from brainfed.federation.defences.by_fold import by_fold
from brainfed.federation.robustness_settings import share_of


def krum(stack: Tensor, present: Tensor, trim: float) -> Tensor:
    """(F, ...) the model of the smallest score in each fold; of equal scores the first.

    Args:
        stack: (M, F, ...) models, all tensors of a model together.
        present: (M, F) whether an institution takes part.
        trim: share of the institutions, rounded up, that are taken for poisoned.
    """
    return by_fold(stack, present, lambda rows: rows[_ranking(rows, share_of(trim, len(rows)))[0]])


def multi_krum(stack: Tensor, present: Tensor, trim: float) -> Tensor:
    """(F, ...) means of the m - f models of the smallest scores; see `krum` for the arguments."""

    def mean_of_the_best(rows: Tensor) -> Tensor:
        poisoned = share_of(trim, len(rows))
        return rows[_ranking(rows, poisoned)[: max(len(rows) - poisoned, 1)]].mean(dim=0)

    return by_fold(stack, present, mean_of_the_best)


def _ranking(rows: Tensor, poisoned: int) -> Tensor:
    """(m,) positions in ascending order of their scores."""
    flat = rows.reshape(len(rows), -1).double()
    # Products of numbers as large as a poisoned model's would round the others' distances away.
    distances = torch.cdist(flat, flat, compute_mode="donot_use_mm_for_euclid_dist").square()
    nearest = distances.sort(dim=1).values[:, 1 : 1 + max(len(rows) - poisoned - 2, 1)]
    return nearest.sum(dim=1).argsort(stable=True)
