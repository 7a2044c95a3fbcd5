"""One local step: clip every subject's gradient, sum, add noise, divide, step (Abadi et al. 2016, Algorithm 1).

Opacus' optimiser does the same. It draws noise on the device of the gradients and reads a gradient a subject of every
weight; here the noise is of keyed streams drawn on the CPU, the same on every machine and after every restart, and wide
weights have gradients as outer products. Tests hold this step to Opacus'.

The streams follow from the config's seed. With the seed the noise can be subtracted: a real institution keeps its
seed to itself. Two trainings under one seed share their noise.
"""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from brainfed.engines.private.cohort import PrivateCohort
from brainfed.engines.private.gradients import subject_gradients
from brainfed.engines.private.poisson import Moment
from brainfed.federation.privacy.gaussian import private_normal
from brainfed.runtime.streams import Streams


def clip_factors(norms: Tensor, clip: float) -> Tensor:
    """(b,) factors that bring gradients of these norms to at most `clip`."""
    return clip / norms.clamp(min=clip)


def clipped_sum(
    module: torch.nn.Module,
    cohort: PrivateCohort,
    part: tuple[int, int],
    samples: Tensor,
    moment: Moment,
    clip: float,
) -> tuple[dict[str, Tensor], Tensor]:
    """Sum over subjects of the clipped gradients, and of the losses.

    One subject more or less changes the sum by at most `clip` in L2 norm over all parameters.

    Args:
        module: the network.
        cohort: the institutions.
        part: institution and place of the fold.
        samples: (b,) positions of the subjects; none gives zeros.
        moment: of the step.
        clip: largest norm.
    """
    total = {name: torch.zeros_like(each) for name, each in module.named_parameters()}
    like = next(iter(total.values()))
    loss = like.new_zeros(())
    for block in cohort.blocks(samples):
        labels = cohort.labels[part][block].to(like.device)
        found = subject_gradients(module, cohort.rows(*part, block, moment, like), labels)
        for name, each in found.weighted_sum(clip_factors(found.norms(), clip)).items():
            total[name] += each
        loss = loss + found.losses.sum()
    return total, loss


def plain_sum(
    module: torch.nn.Module, cohort: PrivateCohort, part: tuple[int, int], samples: Tensor, moment: Moment
) -> tuple[dict[str, Tensor], Tensor]:
    """The sum without clipping, by one backward pass a block; arguments as of `clipped_sum`."""
    named = dict(module.named_parameters())
    total = {name: torch.zeros_like(each) for name, each in named.items()}
    like = next(iter(total.values()))
    loss = like.new_zeros(())
    for block in cohort.blocks(samples):
        labels = cohort.labels[part][block].to(like.device)
        rows = cohort.rows(*part, block, moment, like)
        losses = cross_entropy(module(*rows.arguments), rows.of_rows(labels), reduction="none")
        summed = rows.of_subjects(losses).sum()
        for name, each in zip(named, torch.autograd.grad(summed, tuple(named.values())), strict=True):
            total[name] += each
        loss = loss + summed.detach()
    return total, loss


def add_noise(
    total: Mapping[str, Tensor], scale: float, streams: Streams, place: int, fold: int, moment: Moment
) -> None:
    """Add N(0, scale^2) in place to every tensor, each of a keyed stream."""
    for name, each in total.items():
        each.add_(private_normal(streams, each.shape, place, fold, *moment, name).to(each), alpha=scale)


def apply(module: torch.nn.Module, optimiser: torch.optim.Optimizer, total: Mapping[str, Tensor], size: float) -> None:
    """Step the optimiser on the sum over the expected number of subjects."""
    for name, parameter in module.named_parameters():
        parameter.grad = total[name] / size
    optimiser.step()
