"""Robust means of every number for itself: median and trimmed mean (Yin et al. 2018)."""

from torch import Tensor

from brainfed.federation.defences.by_fold import by_fold
from brainfed.federation.robustness_settings import share_of


def median(stack: Tensor, present: Tensor) -> Tensor:
    """(F, ...) medians over institutions; of an even number the mean of the middle two.

    Args:
        stack: (M, F, ...) uploads.
        present: (M, F) whether an institution takes part.
    """
    return by_fold(stack, present, _median)


def trimmed_mean(stack: Tensor, present: Tensor, trim: float) -> Tensor:
    """(F, ...) means without the ceil(trim m) smallest and largest of m numbers; one or two are always left.

    Args:
        stack: (M, F, ...) uploads.
        present: (M, F) whether an institution takes part.
        trim: share that is cut at each end, below 0.5.
    """
    return by_fold(stack, present, lambda rows: _trimmed_mean(rows, trim))


def _median(rows: Tensor) -> Tensor:
    ordered = rows.sort(dim=0).values
    return (ordered[(len(rows) - 1) // 2] + ordered[len(rows) // 2]) / 2


def _trimmed_mean(rows: Tensor, trim: float) -> Tensor:
    cut = min(share_of(trim, len(rows)), (len(rows) - 1) // 2)
    return rows.sort(dim=0).values[cut : len(rows) - cut].mean(dim=0)
