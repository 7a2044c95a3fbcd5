"""Samples that a network trains on or scores, of every fold, and their order in the steps of an epoch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from brainfed.engines.distilling.crops import Crops
from brainfed.runtime.streams import Streams
from brainfed.samples.labelled_subjects import IntArray


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
            crops: of all subjects of the repeat.
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
        """Samples of the largest fold P."""
        return int(self.samples.shape[1])

    @property
    def held(self) -> Tensor:
        """(F, P) whether a place has a sample."""
        counts = torch.tensor(self.counts, device=self.samples.device)
        return torch.arange(self.size, device=self.samples.device) < counts[:, None]

    def steps(self, batch: int, streams: Streams, *parts: int | str) -> Iterator[Step]:
        """The steps of one epoch: each fold's samples in random order, at most `batch` a step.

        A fold with fewer samples has fewer steps; no fold depends on another's size.

        Args:
            batch: samples a step.
            streams: random streams of the repeat.
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
