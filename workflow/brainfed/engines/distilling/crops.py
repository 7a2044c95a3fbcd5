"""Crops of region series: the samples of recurrent networks (GAHFL Sec. III-A).

A subject has `count` crops of one length, drawn once. Training and tests see the same ones. A subject's score is the
mean probability over its crops [choice: the paper states neither].
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from brainfed.samples.labelled_subjects import IntArray
from brainfed.samples.series_inputs import SeriesInputs
from brainfed.samples.windows import training_offset


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
