"""Private steps: the subjects that they draw, what a network reads of each, its gradient, and the noised sum."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import functional_call, grad_and_value, vmap
from torch.nn.functional import cross_entropy

from brainfed.engines import padded_labels
from brainfed.federation import (
    TOGETHER,
    Ledger,
    Link,
    PrivateSchedule,
    add_up,
    private_normal,
    sampling_rate,
    steps_of_an_epoch,
)
from brainfed.graphs import correlation_adjacency, normalised, positive_correlations
from brainfed.models import Classifier
from brainfed.runtime import Float32, IntArray, Streams
from brainfed.samples import LabelledSubjects, SeriesInputs, test_offsets, training_offset, window

# Subjects of a local step by Poisson sampling, which the accountant presumes: each one at random, independently.
# A permutation cut into batches has no such amplification of privacy by sampling (Abadi et al. 2016, Sec. 3).


class Moment(NamedTuple):
    """A local step of a training, numbers from 0."""

    round: int
    epoch: int
    step: int


@dataclass(frozen=True)
class Poisson:
    """Draws of all institutions; the number of training subjects of an institution counts as public.

    Attributes:
        batch: expected subjects a step; 0: all.
    """

    batch: int
    streams: Streams

    def rate(self, subjects: int) -> float:
        """Probability q that a step includes a subject, of an institution with so many training subjects."""
        return sampling_rate(self.batch, subjects)

    def steps(self, subjects: int) -> int:
        """Local steps of one epoch, 1 / q rounded up; none without training subjects."""
        return steps_of_an_epoch(self.batch, subjects)

    def draw(self, place: int, fold: int, moment: Moment, training: Tensor) -> Tensor:
        """Positions of the drawn subjects, ascending; it may be empty.

        A subject's draw does not depend on which others train.

        Args:
            training: (n,) whether each subject of the institution trains in this fold.
        """
        drawn = self.streams.numpy("poisson", place, fold, *moment).random(len(training))
        return torch.nonzero(training & torch.from_numpy(drawn < self.rate(int(training.sum()))))[:, 0]


# Institutions whose subjects have gradients of their own: a network sees one subject, or one of its windows, alone.

Arguments = Callable[[int, int, Tensor, Moment | None], tuple[Tensor, ...]]
"""Institution, place of the fold, samples (b,), moment of the step -> arguments of the network, one row a sample, or
one row a window where a cohort has `windows_of`. The samples are positions among the institution's subjects. The moment
is None to score; it keys random crops. Rows of one sample are neighbours, in the order of the samples."""

WindowsOf = Callable[[int, int, Tensor, Moment | None], Tensor]
"""The same -> (b,) numbers of windows of each sample, at least 1: rows that `Arguments` has of it."""

BLOCK = 64
"""Samples that a network reads at once."""


@dataclass(frozen=True)
class Rows:
    """What a network reads of b subjects at once.

    Attributes:
        arguments: of the network, one row a window.
        owner: (rows,) place of each row's subject among these subjects; None: a row a subject.
        means: (b, rows) 1 / windows of the subject where a row is one of its windows, else 0; None with `owner`.
    """

    arguments: tuple[Tensor, ...]
    owner: Tensor | None = None
    means: Tensor | None = None

    def of_rows(self, labels: Tensor) -> Tensor:
        """(rows,) from (b,)."""
        return labels if self.owner is None else labels[self.owner]

    def of_subjects(self, values: Tensor) -> Tensor:
        """(b, ...) means over each subject's windows, from (rows, ...)."""
        if self.means is None:
            return values
        return (self.means.to(values) @ values.reshape(len(values), -1)).view(-1, *values.shape[1:])


@dataclass(frozen=True)
class PrivateCohort:
    """The data of the institutions.

    Attributes:
        arguments: of the institutions' networks, which return logits (rows, C).
        labels: (M, F, n) in {0, ..., C - 1}, -1 without a training label, and beyond an institution's subjects; on the
            CPU.
        subjects: (M,) number of subjects of each institution.
        folds: numbers of the F folds; they key the streams.
        classes: number of classes C.
        windows_of: numbers of windows; None: every sample is one row. A subject counts once: its loss and its score
            are means over its windows.
        block: samples that a network reads at once.
    """

    arguments: Arguments
    labels: Tensor
    subjects: Sequence[int]
    folds: tuple[int, ...]
    classes: int
    windows_of: WindowsOf | None = None
    block: int = BLOCK

    @classmethod
    def of(
        cls,
        inputs: LabelledSubjects,
        members: Sequence[IntArray],
        arguments: Arguments,
        windows_of: WindowsOf | None = None,
        block: int = BLOCK,
    ) -> "PrivateCohort":
        """Give every institution its subjects, at positions `members` (M,), and their training labels of all folds."""
        labels, sizes = padded_labels(inputs.labels, members), [len(own) for own in members]
        return cls(arguments, labels, sizes, tuple(range(inputs.folds)), inputs.classes, windows_of, block)

    def training(self, place: int, position: int) -> Tensor:
        """(n,) whether each subject of an institution has a training label in a fold."""
        return self.labels[place, position, : self.subjects[place]] >= 0

    def blocks(self, samples: Tensor) -> Iterator[Tensor]:
        """The samples in parts that fit into memory."""
        return iter(torch.split(samples, self.block)) if len(samples) else iter(())

    def rows(self, place: int, position: int, samples: Tensor, moment: Moment | None, like: Tensor) -> Rows:
        """What a network reads of these samples, on the device and in the floating-point type of `like`."""
        arguments = tuple(
            each.to(like) if each.is_floating_point() else each.to(like.device)
            for each in self.arguments(place, position, samples, moment)
        )
        if self.windows_of is None:
            return Rows(arguments)
        windows = self.windows_of(place, position, samples, moment)
        if (windows == 1).all():
            return Rows(arguments)
        owner = torch.repeat_interleave(torch.arange(len(samples)), windows)
        means = torch.nn.functional.one_hot(owner, len(samples)).T.double() / windows[:, None]
        return Rows(arguments, owner.to(like.device), means.to(like))


class SeriesWindows:
    """Rows of a network: one random window of each subject in training, windows that cover the series to score.

    Args:
        members: (M,) positions of each institution's subjects.
        means: (M, F) indices into `adjacencies` of the graph that an institution's subjects share in a fold; empty:
            every subject has its own.
        adjacencies: of `means`, (k, R, R) normalised.
    """

    def __init__(
        self,
        inputs: SeriesInputs,
        members: Sequence[IntArray],
        length: int,
        means: IntArray | None = None,
        adjacencies: Float32 | None = None,
    ) -> None:
        self.inputs, self.members, self.length = inputs, members, length
        if adjacencies is None:
            every = [correlation_adjacency(inputs.subject(position)) for position in range(len(inputs.subjects))]
            adjacencies = np.stack(every)
        self._adjacencies, self._means = torch.from_numpy(adjacencies), means

    def arguments(self, place: int, position: int, samples: Tensor, moment: Moment | None) -> tuple[Tensor, Tensor]:
        """Windows (rows, T, R) and adjacencies (rows, R, R); see `Arguments`."""
        owners = self.members[place][samples.numpy()].tolist()
        cut = [(owner, offset) for owner in owners for offset in self._offsets(place, position, owner, moment)]
        windows = [window(self.inputs.subject(owner), self.length, offset) for owner, offset in cut]
        if self._means is None:
            adjacencies = self._adjacencies[[owner for owner, _ in cut]]
        else:
            adjacencies = self._adjacencies[int(self._means[place, position])].expand(len(cut), -1, -1)
        return torch.from_numpy(np.stack(windows)), adjacencies

    def windows_of(self, place: int, _position: int, samples: Tensor, moment: Moment | None) -> Tensor:
        """(b,) numbers of windows of each sample."""
        if moment is not None:
            return torch.ones(len(samples), dtype=torch.long)
        lengths = self.inputs.lengths[self.members[place][samples.numpy()]]
        return torch.tensor([len(test_offsets(int(each), self.length)) for each in lengths])

    def _offsets(self, place: int, position: int, owner: int, moment: Moment | None) -> tuple[int, ...]:
        timepoints = int(self.inputs.lengths[owner])
        if moment is None:
            return test_offsets(timepoints, self.length)
        key = (place, position, self.inputs.subjects[owner], *moment)
        return (training_offset(self.inputs.streams, timepoints, self.length, *key),)


def mean_adjacencies(inputs: SeriesInputs, pools: Sequence[IntArray], ledger: Ledger, link: Link = TOGETHER) -> Float32:
    """(k F, R, R) normalised mean correlations of the training subjects of k pools in every fold, folds innermost.

    A pool without training subjects in a fold has the mean of all training subjects. Over a `link` to other
    institutions, sums and numbers of subjects cross as `ledger` declares them, and a pool spans all institutions.
    """
    matrices = [positive_correlations(inputs.subject(each)) for each in range(len(inputs.subjects))]
    adjacencies = []
    for own in pools:
        for fold in range(inputs.folds):
            everybody = np.flatnonzero(inputs.training(fold))
            trained = np.intersect1d(own, everybody)
            chosen = trained if len(trained) else everybody
            here = np.sum([matrices[each] for each in chosen] or [np.zeros_like(matrices[0])], axis=0)
            sums = {"adjacency-sum": here.astype(np.float64), "training-subjects": np.array(len(chosen))}
            total = add_up(link, ledger, len(inputs.subjects), sums)
            mean = total["adjacency-sum"].astype(here.dtype) / int(total["training-subjects"])
            adjacencies.append(normalised(mean))
    return np.stack(adjacencies)


# One local step: clip every subject's gradient, sum, add noise, divide, step (Abadi et al. 2016, Algorithm 1).
#
# Opacus' optimiser does the same. It draws noise on the device of the gradients and reads a gradient a subject of every
# weight; here the noise is of keyed streams drawn on the CPU, the same on every machine and after every restart, and
# wide weights have gradients as outer products. Tests compare this step with Opacus'.
#
# The streams follow from the config's seed. With the seed the noise can be subtracted: a real institution keeps its
# seed to itself. Two trainings under one seed share their noise.


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
