"""Subjects of a local step by Poisson sampling, which the accountant presumes: each one at random, independently.

A permutation cut into batches has no such amplification of privacy by sampling (Abadi et al. 2016, Sec. 3).
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from brainfed.federation.privacy.schedule import sampling_rate, steps_of_an_epoch
from brainfed.runtime.streams import Streams


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
        streams: random streams of the repeat.
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
            place: institution.
            fold: number of the fold.
            moment: of the step.
            training: (n,) whether each subject of the institution trains in this fold.
        """
        drawn = self.streams.numpy("poisson", place, fold, *moment).random(len(training))
        return torch.nonzero(training & torch.from_numpy(drawn < self.rate(int(training.sum()))))[:, 0]
