"""The server's defence by its settings: a robust rule in place of the mean over institutions."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from brainfed.federation.defences.elementwise import median, trimmed_mean
from brainfed.federation.defences.geometric_median import geometric_median
from brainfed.federation.defences.krum import krum, multi_krum
from brainfed.federation.defences.norm_clipping import norm_clipping
from brainfed.federation.robustness_settings import RobustnessSettings

Defence = Callable[[Sequence[Mapping[str, Tensor]], Tensor, Mapping[str, Tensor]], dict[str, Tensor]]
"""Tensors (F, ...) of M institutions by name, weights (M, F), and the last model -> the next model."""

_Rule = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Models (M, F, P), weights (M, F), the last model (F, P) -> the next model (F, P)."""


def defence_of(settings: RobustnessSettings) -> Defence | None:
    """What takes the place of the mean; None without a defence."""
    trim = settings.trim
    rules: dict[str, _Rule] = {
        "median": lambda stack, weights, _: median(stack, weights > 0),
        "trimmed_mean": lambda stack, weights, _: trimmed_mean(stack, weights > 0, trim),
        "krum": lambda stack, weights, _: krum(stack, weights > 0, trim),
        "multi_krum": lambda stack, weights, _: multi_krum(stack, weights > 0, trim),
        "geometric_median": lambda stack, weights, _: geometric_median(stack, weights),
        "norm_clipping": norm_clipping,
    }
    return None if settings.defence == "none" else partial(_defended, rules[settings.defence])


@torch.no_grad()
def _defended(
    rule: _Rule, every: Sequence[Mapping[str, Tensor]], weights: Tensor, last: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Apply a rule to whole models, fold after fold.

    A model with a number that is not finite takes no part; without any model the last one stays.
    """
    found = {name: tensor.clone() for name, tensor in last.items()}
    for fold in range(weights.shape[1]):
        models = torch.stack([_flat(tensors, last, fold) for tensors in every])
        own = weights[:, fold] * models.isfinite().all(dim=1).to(weights)
        if not own.any():
            continue
        shares = (own / own.sum())[:, None]
        # An excluded model may hold anything, and zero times infinity is no number.
        kept = models.where((own > 0).to(models.device)[:, None], torch.zeros_like(models))
        joined = rule(kept[:, None], shares, _flat(last, last, fold)[None])[0]
        sizes = [tensor[fold].numel() for tensor in found.values()]
        for tensor, part in zip(found.values(), torch.split(joined, sizes), strict=True):
            tensor[fold] = part.reshape(tensor[fold].shape)
    return found


def _flat(tensors: Mapping[str, Tensor], names: Mapping[str, Tensor], fold: int) -> Tensor:
    """(P,) all tensors of a model in one fold."""
    return torch.cat([tensors[name][fold].flatten() for name in names])
