"""Recurrent networks of all folds side by side: the crops that they read, their order in an epoch, their steps."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines import content_of, require_finite, wire_name
from brainfed.federation import Adam, Content
from brainfed.models import Kind, RecurrentClassifier, Workspace, class_probabilities, fold_logits
from brainfed.runtime import IntArray, Streams, below
from brainfed.samples import SeriesInputs, training_offset

# Crops of region series: the samples of recurrent networks (GAHFL Sec. III-A).
#
# A subject has `count` crops of one length, drawn once. Training and tests see the same ones. A subject's score is the
# mean probability over its crops [choice: the paper states neither].


@dataclass(frozen=True)
class Crops:
    """Sample `subject * count + c` is crop c of the subject at that position.

    Attributes:
        series: (sum of T, R) z-scores of all subjects, on the device that trains.
        moments: (n * count, length) rows of `series` of each sample; a shorter series starts again at its end.
        count: crops a subject.
    """

    series: Tensor
    moments: Tensor
    count: int

    @classmethod
    def of(cls, inputs: SeriesInputs, length: int, count: int, device: str, precision: torch.dtype) -> "Crops":
        """Draw the crops of all subjects, keyed by their ids."""
        steps = np.arange(length)
        moments = np.empty((len(inputs.subjects), count, length), dtype=np.int64)
        for position, subject in enumerate(inputs.subjects):
            start, timepoints = int(inputs.start[position]), int(inputs.lengths[position])
            for crop in range(count):
                offset = training_offset(inputs.streams, timepoints, length, "crop", subject, crop)
                moments[position, crop] = start + (offset + steps) % timepoints
        series = torch.from_numpy(np.array(inputs.series)).to(device, precision)
        return cls(series, torch.from_numpy(moments.reshape(-1, length)).to(device), count)

    @property
    def regions(self) -> int:
        """Number of regions R."""
        return int(self.series.shape[1])

    def samples_of(self, subjects: IntArray) -> IntArray:
        """Samples of the subjects at these positions, subject by subject."""
        return (subjects[:, None] * self.count + np.arange(self.count)).reshape(-1)

    def signals(self, samples: Tensor) -> Tensor:
        """(..., length, R) signals of samples (...)."""
        moments = self.moments[samples]
        return self.series.index_select(0, moments.reshape(-1)).view(*moments.shape, self.regions)


class Step(NamedTuple):
    """Samples of one step of all folds.

    Attributes:
        rows: (F, B) places in the pool of the fold; any place for padding.
        weight: (F, B) 1 for a sample, 0 for padding.
    """

    rows: Tensor
    weight: Tensor


@dataclass(frozen=True)
class Pool:
    """Samples of F folds, padded to the P of the largest fold.

    Attributes:
        samples: (F, P) numbers of crops.
        labels: (F, P) classes; 0 where hidden.
        counts: (F,) samples of each fold.
        folds: numbers of the folds; they key the streams.
    """

    samples: Tensor
    labels: Tensor
    counts: tuple[int, ...]
    folds: tuple[int, ...]

    @classmethod
    def of(cls, crops: Crops, subjects: Sequence[IntArray], labels: IntArray) -> "Pool":
        """All crops of subjects.

        Args:
            subjects: (F,) positions in each fold.
            labels: (F, n) labels of the repeat, -1 where hidden.
        """
        samples = [crops.samples_of(own) for own in subjects]
        most = max(map(len, samples))
        padded = np.zeros((2, len(samples), most), dtype=np.int64)
        for fold, own in enumerate(samples):
            padded[0, fold, : len(own)] = own
            padded[1, fold, : len(own)] = np.maximum(labels[fold, own // crops.count], 0)
        tensors = torch.from_numpy(padded).to(crops.moments.device)
        return cls(tensors[0], tensors[1], tuple(map(len, samples)), tuple(range(len(samples))))

    @property
    def size(self) -> int:
        """Number of samples P of the largest fold."""
        return int(self.samples.shape[1])

    @property
    def real(self) -> Tensor:
        """(F, P) True for samples, False for padding."""
        counts = torch.tensor(self.counts, device=self.samples.device)
        return torch.arange(self.size, device=self.samples.device) < counts[:, None]

    def steps(self, batch: int, streams: Streams, *parts: int | str) -> Iterator[Step]:
        """The steps of one epoch: each fold's samples in random order, at most `batch` a step.

        A fold with fewer samples has fewer steps; no fold depends on another's size.

        Args:
            parts: what else keys the order: trainer, round, epoch.
        """
        width = min(batch, self.size)
        count = -(-self.size // width) if width else 0
        rows = np.zeros((len(self.folds), count * width), dtype=np.int64)
        weight = np.zeros(rows.shape, dtype=np.float32)
        for place, (fold, size) in enumerate(zip(self.folds, self.counts, strict=True)):
            rows[place, :size] = streams.numpy("batches", *parts, fold).permutation(size)
            weight[place, :size] = 1
        for step in range(count):
            part = np.s_[:, step * width : (step + 1) * width]
            yield Step(torch.from_numpy(rows[part]).to(self.samples.device), torch.from_numpy(weight[part]))

    def blocks(self, batch: int) -> Iterator[slice]:
        """Places of all samples in order, at most `batch` at a time."""
        for first in range(0, self.size, batch):
            yield slice(first, min(first + batch, self.size))


BLOCK = 512
"""Samples of a fold that are scored at a time."""


class FoldNetwork:
    """F networks of one kind.

    Args:
        kind: `lstm`, `gru`, `bilstm` or `slstm`.
        module: of that kind; its weights are not read.
    """

    def __init__(
        self, kind: Kind, module: RecurrentClassifier, folds: int, device: str, precision: torch.dtype
    ) -> None:
        self.kind, self.module, self.folds = kind, module, folds
        self._workspace = Workspace()
        self.parameters = {
            name: torch.zeros((folds, *parameter.shape), device=device, dtype=precision)
            for name, parameter in module.named_parameters()
        }

    def start(self, streams: Streams, *parts: int | str) -> None:
        """Draw the initial weights of every fold."""
        for fold in range(self.folds):
            self.module.start(streams, *parts, fold)
            for name, parameter in self.module.named_parameters():
                self.parameters[name][fold] = parameter.detach()

    def logits(self, signals: Tensor, keep: Tensor | None = None) -> Tensor:
        """(F, B, C) of signals (F, B, T, R)."""
        return fold_logits(self.kind, self.parameters, signals, keep, self._workspace)

    @torch.no_grad()
    def scores(self, crops: Crops, pool: Pool) -> Tensor:
        """(F, P, C) logits of a pool."""
        blocks = [self.logits(crops.signals(pool.samples[:, part])) for part in pool.blocks(BLOCK)]
        return torch.cat(blocks, dim=1)

    @torch.no_grad()
    def probabilities(self, crops: Crops, pool: Pool) -> NDArray[Any]:
        """(F, subjects, C) of the subjects of a pool, float64: means over their crops."""
        by_crop = class_probabilities(self.scores(crops, pool))
        by_subject = by_crop.view(self.folds, -1, crops.count, by_crop.shape[-1])
        return np.asarray(by_subject.mean(dim=2).cpu().numpy())

    def shared(self) -> dict[str, Tensor]:
        """Copies of the parameters by name on the wire."""
        return {self.wire(name): parameter.detach().clone() for name, parameter in self.parameters.items()}

    def content(self) -> Content:
        """Tensors of the network of one fold, for the ledger."""
        return content_of({self.wire(name): parameter for name, parameter in self.parameters.items()}, 1)

    def wire(self, parameter: str) -> str:
        """Name on the wire: networks of several kinds differ in their shapes."""
        return f"{self.kind}.{wire_name(parameter)}"

    @torch.no_grad()
    def receive(self, tensors: Mapping[str, Tensor]) -> None:
        """Copy parameters by name on the wire."""
        for name, parameter in self.parameters.items():
            parameter.copy_(tensors[self.wire(name)])

    @torch.no_grad()
    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy parameters by their own names."""
        for name, parameter in self.parameters.items():
            parameter.copy_(torch.from_numpy(arrays[name]))


NETWORK, OPTIMISER = "network/", "optimiser/"

Loss = Callable[[Tensor, Step], Tensor]
"""Logits (F, B, C) of a step's samples, and the step -> loss (F,)."""


class Trainer:
    """A network, its optimiser, and the samples that it learns from.

    Args:
        name: of the institution or the server, for messages.
        place: keys the order of samples and the dropout.
        network: trained in place.
        dropout: share of the pooled vector that a step drops.
    """

    def __init__(
        self,
        name: str,
        place: int,
        network: FoldNetwork,
        crops: Crops,
        pool: Pool,
        batch: int,
        learning_rate: float,
        dropout: float,
        streams: Streams,
    ) -> None:
        self.name, self.place, self.network, self.crops, self.pool = name, place, network, crops, pool
        self.batch, self.dropout, self.streams = batch, dropout, streams
        # One list of tensors a fold: a fold without samples in a step takes none.
        self._models = [[each[fold] for each in network.parameters.values()] for fold in range(network.folds)]
        self.optimiser = Adam([tensor for model in self._models for tensor in model], learning_rate)

    def epochs(self, number: int, count: int, loss: Loss) -> NDArray[Any]:
        """Train `count` epochs of round `number`; (F,) mean loss of their steps, NaN in a fold without samples.

        Raises:
            UserError: a loss is not finite.
        """
        folds = self.network.folds
        if not self.pool.size:
            return np.full(folds, np.nan)
        total, taken = torch.zeros(folds, dtype=torch.float64), torch.zeros(folds, dtype=torch.float64)
        for epoch in range(count):
            factors = self._kept(number, epoch)
            for index, step in enumerate(self.pool.steps(self.batch, self.streams, self.place, number, epoch)):
                losses = self._step(step, loss, None if factors is None else factors[:, index])
                active = step.weight.sum(dim=1) > 0
                total += torch.where(active, losses.cpu().double(), 0.0)
                taken += active
        mean = total / taken
        for fold, size in zip(self.pool.folds, self.pool.counts, strict=True):
            if size:
                require_finite(float(mean[fold]), self.name, fold, number)
        return mean.numpy()

    def state(self) -> dict[str, NDArray[Any]]:
        """Network and optimiser on the host."""
        parameters = self.network.parameters.items()
        arrays = {f"{NETWORK}{name}": parameter.detach().cpu().numpy() for name, parameter in parameters}
        return arrays | {f"{OPTIMISER}{name}": array for name, array in self.optimiser.arrays().items()}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a `state`."""
        self.network.load(below(NETWORK, arrays))
        self.optimiser.load(below(OPTIMISER, arrays))

    def _step(self, step: Step, loss: Loss, keep: Tensor | None) -> Tensor:
        parameters = self.network.parameters.values()
        for parameter in parameters:
            parameter.requires_grad_()
        signals = self.crops.signals(self.pool.samples.gather(1, step.rows))
        losses = loss(self.network.logits(signals, keep), step)
        gradients = torch.autograd.grad(losses.sum(), list(parameters))
        for parameter in parameters:
            parameter.requires_grad_(False)
        for fold, weight in enumerate(step.weight):
            for place, tensor in enumerate(self._models[fold]):
                tensor.grad = gradients[place][fold] if weight.any() else None
        self.optimiser.step()
        return losses.detach()

    def _kept(self, number: int, epoch: int) -> Tensor | None:
        """(F, steps, B, width) factors of the pooled vector in an epoch."""
        if self.dropout == 0:
            return None
        width = min(self.batch, self.pool.size)
        shape = (-(-self.pool.size // width), width, self.network.module.pooled)
        drawn = [
            torch.rand(shape, generator=torch.Generator().manual_seed(
                self.streams.key("dropout", self.place, number, epoch, fold)))
            for fold in self.pool.folds
        ]  # fmt: skip
        kept = torch.stack(drawn) >= self.dropout
        return (kept / (1 - self.dropout)).to(self.crops.series)
