"""Robust rules of the server in place of the mean over institutions.

A rule reads the uploads of M institutions (M, F, ...) and gives the server's tensor (F, ...). An institution takes part
in a fold where its entry of `present` or `weights` (M, F) is above 0. Rules on whole models read all of their tensors
together.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from brainfed.federation._settings import RobustnessSettings, share_of


def _by_fold(stack: Tensor, weights: Tensor, rule: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """(F, ...) results of a rule on the rows and weights of each fold that take part; zeros in a fold without any."""
    joined = stack.new_zeros(stack.shape[1:])
    for fold, shares in enumerate(weights.to(stack.device).T):
        own = shares > 0
        if own.any():
            joined[fold] = rule(stack[own, fold], shares[own])
    return joined


# Robust means of every number for itself: median and trimmed mean (Yin et al. 2018).


def median(stack: Tensor, present: Tensor) -> Tensor:
    """(F, ...) medians over institutions; of an even number the mean of the middle two."""

    def middle(rows: Tensor, _shares: Tensor) -> Tensor:
        ordered = rows.sort(dim=0).values
        return (ordered[(len(rows) - 1) // 2] + ordered[len(rows) // 2]) / 2

    return _by_fold(stack, present, middle)


def trimmed_mean(stack: Tensor, present: Tensor, trim: float) -> Tensor:
    """(F, ...) means without the ceil(trim m) smallest and largest of m numbers; one or two are always left."""

    def inner_mean(rows: Tensor, _shares: Tensor) -> Tensor:
        cut = min(share_of(trim, len(rows)), (len(rows) - 1) // 2)
        return rows.sort(dim=0).values[cut : len(rows) - cut].mean(dim=0)

    return _by_fold(stack, present, inner_mean)


# The geometric median of models by Weiszfeld's iterations (Pillutla et al. 2022, RFA).

STEPS = 100
"""Most iterations; RFA has three or so."""

NEAREST = 1e-6
"""Smallest distance that a weight is divided by, in distances of the first iteration (RFA's smoothing nu)."""

TOLERANCE = 1e-8
"""Step at which iterations end, in the same unit."""


def geometric_median(stack: Tensor, weights: Tensor) -> Tensor:
    """(F, ...) points of the smallest weighted sum of distances to the models, from their mean on."""
    return _by_fold(stack, weights.to(torch.float64), _weiszfeld)


def _weiszfeld(models: Tensor, weights: Tensor) -> Tensor:
    """(...) the median of models (m, ...)."""
    rows = models.double().reshape(len(models), -1)
    centre = weights @ rows / weights.sum()
    unit = float((rows - centre).norm(dim=1).mean())
    for _ in range(STEPS if unit > 0 else 0):
        pull = weights / (rows - centre).norm(dim=1).clamp(min=NEAREST * unit)
        before, centre = centre, pull @ rows / pull.sum()
        if float((centre - before).norm()) <= TOLERANCE * unit:
            break
    return centre.reshape(models.shape[1:])


# Krum and multi-Krum (Blanchard et al. 2017): models that lie near others.
#
# The score of a model is the sum of its squared distances to the m - f - 2 nearest others of m models, of which the
# share `trim`, f rounded up, are taken for poisoned; it has one neighbour at least. The guarantee needs m >= 2 f + 3.
# Multi-Krum averages the m - f models of the smallest scores.


def krum(stack: Tensor, present: Tensor, trim: float) -> Tensor:
    """(F, ...) the model of the smallest score in each fold; of equal scores the first."""
    return _by_fold(stack, present, lambda rows, _: rows[_ranking(rows, share_of(trim, len(rows)))[0]])


def multi_krum(stack: Tensor, present: Tensor, trim: float) -> Tensor:
    """(F, ...) means of the m - f models of the smallest scores."""

    def mean_of_the_best(rows: Tensor, _shares: Tensor) -> Tensor:
        poisoned = share_of(trim, len(rows))
        return rows[_ranking(rows, poisoned)[: max(len(rows) - poisoned, 1)]].mean(dim=0)

    return _by_fold(stack, present, mean_of_the_best)


def _ranking(rows: Tensor, poisoned: int) -> Tensor:
    """(m,) positions in ascending order of their scores."""
    flat = rows.reshape(len(rows), -1).double()
    # Products of numbers as large as a poisoned model's would round the others' distances away.
    distances = torch.cdist(flat, flat, compute_mode="donot_use_mm_for_euclid_dist").square()
    nearest = distances.sort(dim=1).values[:, 1 : 1 + max(len(rows) - poisoned - 2, 1)]
    return nearest.sum(dim=1).argsort(stable=True)


# Means of updates that are clipped to their median length (Sun et al. 2019, with a bound that needs no setting).


def norm_clipping(stack: Tensor, weights: Tensor, last: Tensor) -> Tensor:
    """(F, ...) the round's first model `last` plus the weighted mean of updates, none longer than their median norm."""
    shares = weights.to(stack.device, torch.float64)
    updates = (stack - last).reshape(*stack.shape[:2], -1).double()
    norms = updates.norm(dim=2)
    shares = shares * (median(norms, weights > 0) / norms.clamp(min=torch.finfo(norms.dtype).tiny)).clamp(max=1)
    return last + torch.einsum("mf,mfp->fp", shares, updates).reshape(last.shape).to(last)


Defence = Callable[[Sequence[Mapping[str, Tensor]], Tensor, Mapping[str, Tensor]], dict[str, Tensor]]
"""Tensors (F, ...) of M institutions by name, weights (M, F), and the last model -> the next model."""


def defence_of(settings: RobustnessSettings) -> Defence | None:
    """What takes the place of the mean; None without a defence."""
    return None if settings.defence == "none" else partial(_defended, settings)


@torch.no_grad()
def _defended(
    settings: RobustnessSettings, every: Sequence[Mapping[str, Tensor]], weights: Tensor, last: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Apply the rule to whole models, fold after fold.

    A model with a number that is not finite takes no part; without any model the last one stays.
    """
    joined = {name: tensor.clone() for name, tensor in last.items()}
    for fold in range(weights.shape[1]):
        models = torch.stack([_flat(tensors, last, fold) for tensors in every])
        own = weights[:, fold] * models.isfinite().all(dim=1).to(weights)
        if not own.any():
            continue
        shares = (own / own.sum())[:, None]
        # An excluded model may hold anything, and zero times infinity is no number.
        kept = models.where((own > 0).to(models.device)[:, None], torch.zeros_like(models))
        model = _joined(settings, kept[:, None], shares, _flat(last, last, fold)[None])[0]
        sizes = [tensor[fold].numel() for tensor in joined.values()]
        for tensor, part in zip(joined.values(), torch.split(model, sizes), strict=True):
            tensor[fold] = part.reshape(tensor[fold].shape)
    return joined


def _joined(settings: RobustnessSettings, models: Tensor, weights: Tensor, last: Tensor) -> Tensor:
    """(F, P) the next model from models (M, F, P), weights (M, F) and the last model (F, P)."""
    match settings.defence:
        case "median":
            return median(models, weights > 0)
        case "trimmed_mean":
            return trimmed_mean(models, weights > 0, settings.trim)
        case "krum":
            return krum(models, weights > 0, settings.trim)
        case "multi_krum":
            return multi_krum(models, weights > 0, settings.trim)
        case "geometric_median":
            return geometric_median(models, weights)
        case _:
            return norm_clipping(models, weights, last)


def _flat(tensors: Mapping[str, Tensor], names: Mapping[str, Tensor], fold: int) -> Tensor:
    """(P,) all tensors of a model in one fold."""
    return torch.cat([tensors[name][fold].flatten() for name in names])
