"""Windows of region series and the subjects' spatial graphs, as a network of FGLBC reads them."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines.private.poisson import Moment
from brainfed.federation.ledger import Ledger
from brainfed.federation.link import TOGETHER, Link
from brainfed.federation.sharing import add_up
from brainfed.graphs.connectome.normalised import normalised, normalised_adjacency, positive_correlations
from brainfed.samples.labelled_subjects import IntArray
from brainfed.samples.series_inputs import SeriesInputs
from brainfed.samples.windows import test_offsets, training_offset, window

Float32 = NDArray[np.float32]


class SeriesWindows:
    """Rows of a network: one random window of each subject in training, windows that cover the series to score.

    Args:
        inputs: region series of the repeat.
        members: (M,) positions of each institution's subjects.
        length: time points of a window.
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
        own = adjacencies is None
        count = len(inputs.subjects)
        every = np.stack([normalised_adjacency(inputs.subject(at)) for at in range(count)]) if own else adjacencies
        self._adjacencies, self._means = torch.from_numpy(every), means

    def arguments(self, place: int, position: int, samples: Tensor, moment: Moment | None) -> tuple[Tensor, Tensor]:
        """Windows (rows, T, R) and adjacencies (rows, R, R); see `engines.private.cohort.Arguments`."""
        owners = [int(each) for each in self.members[place][samples.numpy()]]
        cut = [(owner, offset) for owner in owners for offset in self._offsets(place, position, owner, moment)]
        found = np.stack([window(self.inputs.subject(owner), self.length, offset) for owner, offset in cut])
        if self._means is None:
            return torch.from_numpy(found), self._adjacencies[[owner for owner, _ in cut]]
        shared = self._adjacencies[int(self._means[place, position])]
        return torch.from_numpy(found), shared.expand(len(cut), -1, -1)

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
    found = []
    for own in pools:
        for fold in range(inputs.folds):
            everybody = np.flatnonzero(inputs.training(fold))
            trained = np.intersect1d(own, everybody)
            chosen = trained if len(trained) else everybody
            here = np.sum([matrices[each] for each in chosen] or [np.zeros_like(matrices[0])], axis=0)
            sums = {"adjacency-sum": here.astype(np.float64), "training-subjects": np.array(len(chosen))}
            total = add_up(link, ledger, len(inputs.subjects), sums)
            found.append(normalised(total["adjacency-sum"].astype(here.dtype) / int(total["training-subjects"])))
    return np.stack(found)
