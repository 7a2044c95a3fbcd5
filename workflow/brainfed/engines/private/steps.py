"""One local step: clip every subject's gradient, sum, add noise, divide, step (Abadi et al. 2016, Algorithm 1).

Opacus' optimiser does the same. It draws noise on the device of the gradients and reads a gradient a subject of every
weight; here the noise is of keyed streams drawn on the CPU, the same on every machine and after every restart, and
wide weights have gradients as outer products. Tests hold this step to Opacus'.

The streams follow from the config's seed. With the seed the noise can be subtracted: a real institution keeps its
seed to itself. Two trainings under one seed share their noise.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call, grad_and_value, vmap
from torch.nn.functional import cross_entropy

from brainfed.engines.private.cohort import Moment, PrivateCohort, Rows
from brainfed.federation.noise import private_normal
from brainfed.federation.settings import PrivateSchedule
from brainfed.models.classifier import Classifier
from brainfed.runtime.streams import Streams


def make_optimiser(module: torch.nn.Module, schedule: PrivateSchedule) -> torch.optim.Optimizer:
    """The schedule's optimiser of all parameters."""
    rate, decay = schedule.learning_rate, schedule.weight_decay
    if schedule.optimiser == "adam":
        return torch.optim.Adam(module.parameters(), lr=rate, weight_decay=decay)
    return torch.optim.SGD(module.parameters(), lr=rate, weight_decay=decay, momentum=schedule.momentum)


def optimiser_arrays(optimiser: torch.optim.Optimizer) -> dict[str, NDArray[Any]]:
    """The state by `PARAMETER/NAME`, numbers of the parameters from 0."""
    return {
        f"{index}/{name}": np.asarray(torch.as_tensor(value).cpu())
        for index, values in optimiser.state_dict()["state"].items()
        for name, value in values.items()
        if value is not None
    }


def restore_optimiser(optimiser: torch.optim.Optimizer, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Load `optimiser_arrays`."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, array in arrays.items():
        index, _, part = name.partition("/")
        state.setdefault(int(index), {})[part] = torch.from_numpy(np.array(array))
    optimiser.load_state_dict(optimiser.state_dict() | {"state": state})


# The gradient of each subject: `torch.func` for any module, products of two vectors for a classifier's wide weights.
#
# One subject with several windows has one gradient, that of the mean loss over its windows.


@dataclass(frozen=True)
class SubjectGradients:
    """Gradients of b subjects.

    Attributes:
        losses: (b,) of each subject.
        whole: parameter -> (b, ...).
        outer: parameter (d, w) -> inputs (b, d) and gradients (b, w) of their product: the gradient of a subject is
            the outer product of its two rows, which needs no memory of b x d x w.
    """

    losses: Tensor
    whole: Mapping[str, Tensor]
    outer: Mapping[str, tuple[Tensor, Tensor]]

    def norms(self) -> Tensor:
        """(b,) L2 norms over all parameters."""
        squares = [each.flatten(1).square().sum(dim=1) for each in self.whole.values()]
        squares += [
            inputs.square().sum(dim=1) * products.square().sum(dim=1) for inputs, products in self.outer.values()
        ]
        return torch.stack(squares).sum(dim=0).sqrt()

    def weighted_sum(self, factors: Tensor) -> dict[str, Tensor]:
        """The sum of all subjects' gradients, each times its factor (b,)."""
        sums = {name: torch.tensordot(factors, each, dims=1) for name, each in self.whole.items()}
        return sums | {
            name: inputs.T @ (products * factors[:, None]) for name, (inputs, products) in self.outer.items()
        }


def subject_gradients(module: torch.nn.Module, rows: Rows, labels: Tensor) -> SubjectGradients:
    """The gradients of the subjects with labels (b,); no gradient of the module is written."""
    if rows.owner is None and isinstance(module, Classifier) and set(module.reads.values()) == {"own"}:
        return _of_classifier(module, rows.arguments[0], labels)
    parameters = {name: each.detach() for name, each in module.named_parameters()}

    def loss(weights: dict[str, Tensor], label: Tensor, *arguments: Tensor) -> Tensor:
        logits: Tensor = functional_call(module, weights, tuple(each[None] for each in arguments))
        return cross_entropy(logits, label[None])

    every = (None, 0, *(0 for _ in rows.arguments))
    gradients, losses = vmap(grad_and_value(loss), every)(parameters, rows.of_rows(labels), *rows.arguments)
    whole = {name: rows.of_subjects(each) for name, each in gradients.items()}
    return SubjectGradients(rows.of_subjects(losses), whole, {})


def _of_classifier(module: Classifier, x: Tensor, labels: Tensor) -> SubjectGradients:
    """Of a classifier without a graph, from features x (b, d); its other layers read weights with a leading axis b."""
    parameters = {name: each.detach() for name, each in module.named_parameters()}
    products = {name: (x @ parameters[name])[:, None].requires_grad_() for name in module.reads}
    own = {
        name: each.expand(len(x), *([1] * (2 - each.dim())), *each.shape).requires_grad_()
        for name, each in parameters.items()
        if name not in products
    }
    logits = functional_call(_Logits(module), {f"module.{name}": each for name, each in own.items()}, (products,))
    losses = cross_entropy(logits[:, 0], labels, reduction="none")
    gradients = dict(
        zip([*products, *own], torch.autograd.grad(losses.sum(), [*products.values(), *own.values()]), strict=True)
    )
    outer = {name: (x, gradients[name][:, 0]) for name in products}
    whole = {name: gradients[name].view(len(x), *parameters[name].shape) for name in own}
    return SubjectGradients(losses.detach(), whole, outer)


class _Logits(torch.nn.Module):
    """The layers of a classifier after its products with the features."""

    def __init__(self, module: Classifier) -> None:
        super().__init__()
        self.module = module

    def forward(self, products: Mapping[str, Tensor]) -> Tensor:
        """(b, 1, C) from products (b, 1, width)."""
        return self.module.logits(products, None)


def clip_factors(norms: Tensor, clip: float) -> Tensor:
    """(b,) factors that bring gradients of these norms to at most `clip`."""
    return clip / norms.clamp(min=clip)


def clipped_sum(
    module: torch.nn.Module, cohort: PrivateCohort, part: tuple[int, int], samples: Tensor, moment: Moment, clip: float
) -> tuple[dict[str, Tensor], Tensor]:
    """Sum over subjects of the clipped gradients, and of the losses.

    One subject more or less changes the sum by at most `clip` in L2 norm over all parameters.

    Args:
        part: institution and place of the fold.
        samples: (b,) positions of the subjects; none gives zeros.
        clip: largest norm.
    """
    total = {name: torch.zeros_like(each) for name, each in module.named_parameters()}
    like = next(iter(total.values()))
    loss = like.new_zeros(())
    for block in cohort.blocks(samples):
        labels = cohort.labels[part][block].to(like.device)
        gradients = subject_gradients(module, cohort.rows(*part, block, moment, like), labels)
        for name, each in gradients.weighted_sum(clip_factors(gradients.norms(), clip)).items():
            total[name] += each
        loss = loss + gradients.losses.sum()
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
