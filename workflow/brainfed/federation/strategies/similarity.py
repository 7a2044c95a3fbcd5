"""How alike institutions are: weights of the graph that a clustered federation cuts."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import inf, sqrt
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.message import GRADIENT_NORM, Message
from brainfed.federation.strategies.clusters import FloatArray, IntArray


class Similarity(Protocol):
    """The interface of GCFL's server to a measure of similarity."""

    def read(self, replies: Sequence[Message]) -> None:
        """Keep what it needs of a round's replies, one an institution."""

    def ready(self, fold: int) -> bool:
        """Whether enough is known of this fold to cut one of its clusters."""

    def weights(self, fold: int, members: IntArray, updates: Tensor) -> FloatArray:
        """(m, m) weights between members of a cluster, none negative.

        Args:
            fold: position of the fold.
            members: (m,) places of the institutions.
            updates: (m, P) what each has added to its shared weights in this round.
        """

    def forget(self, fold: int) -> None:
        """A cluster of this fold was cut."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Arrays that later rounds depend on."""

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy a `state`."""


class UpdateCosine:
    """GCFL: cos(Delta_i, Delta_j) + 1 between the updates of a round (Xie et al. 2021)."""

    def read(self, replies: Sequence[Message]) -> None:
        """Nothing to keep."""

    def ready(self, _fold: int) -> bool:
        """Always: a round's updates suffice."""
        return True

    def weights(self, _fold: int, _members: IntArray, updates: Tensor) -> FloatArray:
        """(m, m); an update of zeros has the cosine 0 with all others."""
        exact = updates.double()
        units = exact / exact.norm(dim=1, keepdim=True).clamp(min=torch.finfo(exact.dtype).tiny)
        found: FloatArray = (units @ units.T + 1).clamp(min=0).cpu().numpy()
        return found

    def forget(self, _fold: int) -> None:
        """Nothing to forget."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Nothing."""
        return {}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Nothing."""


class GradientNorms:
    """GCFL+: max(D) - D, with D the DTW distances between sequences of gradient norms (Xie et al. 2021).

    Replies have a tensor `gradient-norm`. After a cut all sequences of the fold start again, and no cluster of it is
    cut before they are whole, as in the authors' code.

    Args:
        length: number d of last rounds that are compared.
    """

    def __init__(self, length: int) -> None:
        self.length = length
        self.held: list[FloatArray] = []
        """One (M, F) a round, the latest last; NaN where a norm is missing or forgotten."""

    def read(self, replies: Sequence[Message]) -> None:
        """Append the norms of a round.

        Raises:
            ValueError: the norm of an institution with training samples is not finite.
        """
        norms = torch.stack([reply.tensors[GRADIENT_NORM] for reply in replies]).double().cpu().numpy()
        present = torch.stack([reply.samples for reply in replies]).cpu().numpy() > 0
        if (present & ~np.isfinite(norms)).any():
            place, fold = np.argwhere(present & ~np.isfinite(norms))[0]
            raise ValueError(f"expected finite gradient norms, found {norms[place, fold]} of {place=} in {fold=}")
        self.held = [*self.held, np.where(present, norms, np.nan)][-self.length :]

    def ready(self, fold: int) -> bool:
        """Whether d rounds have passed since the last cut, or since the start."""
        return int(np.isfinite(np.stack(self.held)[:, :, fold]).any(axis=1).sum()) == self.length

    def weights(self, fold: int, members: IntArray, _updates: Tensor) -> FloatArray:
        """(m, m)."""
        known = np.stack(self.held)[:, members, fold]
        distances = dtw_distances([column[np.isfinite(column)].tolist() for column in known.T])
        assert np.isfinite(distances).all(), "every institution with training samples has a norm of this round"
        return np.asarray(distances.max() - distances)

    def forget(self, fold: int) -> None:
        """Empty the sequences of a fold."""
        for norms in self.held:
            norms[:, fold] = np.nan

    def state(self) -> dict[str, NDArray[Any]]:
        """The sequences, (rounds, M, F)."""
        return {"gradient-norms": np.array(self.held)}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy the sequences."""
        self.held = list(arrays["gradient-norms"].copy())


def dtw_distances(sequences: Sequence[Sequence[float]]) -> FloatArray:
    """(m, m) distances between m sequences."""
    found = np.zeros((len(sequences), len(sequences)))
    for one, other in combinations(range(len(sequences)), 2):
        found[one, other] = found[other, one] = dtw(sequences[one], sequences[other])
    return found


def dtw(first: Iterable[float], second: Sequence[float]) -> float:
    """Dynamic time warping: root of the smallest sum of squared differences along a path (Sakoe and Chiba 1978).

    Infinite if only one of the sequences is empty.
    """
    sums = [0.0] + [inf] * len(second)
    for value in first:
        previous, sums = sums, [inf]
        for place, other in enumerate(second):
            sums.append((value - other) ** 2 + min(previous[place], previous[place + 1], sums[place]))
    return sqrt(sums[-1])
