"""Clustered federated learning of graphs: GCFL and GCFL+ (Xie et al. 2021), the cut and the similarity included."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from math import inf, sqrt
from typing import Any, Literal

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.manifold import spectral_embedding
from torch import Tensor

from brainfed.federation import GRADIENT_NORM, Message
from brainfed.federation.strategies._fedavg import Server, average, institution_weights
from brainfed.runtime import UserError

# How alike institutions are: weights of the graph that a clustered federation cuts.

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Clustering = Literal["minimum_cut", "balanced"]


class Similarity:
    """How GCFL's server measures similarity in a fold, given by its position; by default from one round's updates."""

    def weights(self, _fold: int, _members: IntArray, _updates: Tensor) -> FloatArray:
        """(m, m) weights between members of a cluster, none negative.

        Members (m,) are places of institutions; updates (m, P) what each has added to its shared weights in this round.
        """
        raise NotImplementedError

    def read(self, replies: Sequence[Message]) -> None:
        """Keep what it needs of a round's replies, one an institution."""

    def ready(self, _fold: int) -> bool:
        """Whether enough is known of this fold to cut one of its clusters."""
        return True

    def forget(self, fold: int) -> None:
        """Take note that a cluster of this fold was cut."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Arrays that later rounds depend on."""
        return {}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a `state`."""


class UpdateCosine(Similarity):
    """GCFL: cos(Delta_i, Delta_j) + 1 between the updates of a round (Xie et al. 2021)."""

    def weights(self, _fold: int, _members: IntArray, updates: Tensor) -> FloatArray:
        """(m, m); an update of zeros has the cosine 0 with all others."""
        exact = updates.double()
        units = exact / exact.norm(dim=1, keepdim=True).clamp(min=torch.finfo(exact.dtype).tiny)
        return np.asarray((units @ units.T + 1).clamp(min=0).cpu().numpy())


class GradientNorms(Similarity):
    """GCFL+: max(D) - D, with D the DTW distances between sequences of gradient norms (Xie et al. 2021).

    Replies have a tensor `gradient-norm`; norms of the last `length` rounds are compared. After a cut all sequences of
    the fold start again, and no cluster of it is cut before they are whole, as in the authors' code.
    """

    def __init__(self, length: int) -> None:
        self.length = length
        self.norms: list[FloatArray] = []
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
        self.norms = [*self.norms, np.where(present, norms, np.nan)][-self.length :]

    def ready(self, fold: int) -> bool:
        """Whether d rounds have passed since the last cut, or since the start."""
        return int(np.isfinite(np.stack(self.norms)[:, :, fold]).any(axis=1).sum()) == self.length

    def weights(self, fold: int, members: IntArray, _updates: Tensor) -> FloatArray:
        """(m, m) max(D) - D of the members' sequences."""
        known = np.stack(self.norms)[:, members, fold]
        sequences = [column[np.isfinite(column)].tolist() for column in known.T]
        distances = np.zeros((len(sequences), len(sequences)))
        for first, second in combinations(range(len(sequences)), 2):
            distances[first, second] = distances[second, first] = dtw(sequences[first], sequences[second])
        assert np.isfinite(distances).all(), "every institution with training samples has a norm of this round"
        return np.asarray(distances.max() - distances)

    def forget(self, fold: int) -> None:
        """Empty the sequences of a fold."""
        for norms in self.norms:
            norms[:, fold] = np.nan

    def state(self) -> dict[str, NDArray[Any]]:
        """The sequences, (rounds, M, F)."""
        return {"gradient-norms": np.array(self.norms)}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy the sequences."""
        self.norms = list(arrays["gradient-norms"].copy())


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


Cut = Callable[[FloatArray], BoolArray]
"""Weights (m, m) of the complete graph over a cluster -> (m,) whether an institution is in the one part or the other.
Weights are symmetric and not negative; the diagonal does not count."""

LEAST = 1e-9
"""Weight, as a share of the largest, that joins every pair before the normalised cut, which wants a connected graph."""


def minimum_cut(weights: FloatArray) -> BoolArray:
    """The cut whose weights have the smallest sum (Stoer and Wagner 1997), as GCFL cuts.

    Between parts of k and m - k institutions lie k (m - k) pairs, so near-equal weights cut off a single institution.
    """
    graph = nx.complete_graph(len(weights))
    for first, second, edge in graph.edges(data=True):
        edge["weight"] = float(weights[first, second])
    _, (part, _) = nx.stoer_wagner(graph)
    return np.isin(np.arange(len(weights)), part)


def balanced(weights: FloatArray) -> BoolArray:
    """The normalised cut, which prefers parts of like weight.

    The parts are the signs of the second eigenvector of the normalised Laplacian (Shi and Malik 2000), which is
    orthogonal to a positive one: both parts have institutions.
    """
    joined = np.maximum(weights, LEAST * (weights.max() or 1.0))
    vector = spectral_embedding(joined, n_components=1, drop_first=True, random_state=0)[:, 0]
    return np.asarray(vector > 0)


CUTS: Mapping[Clustering, Cut] = {"minimum_cut": minimum_cut, "balanced": balanced}


def split(clusters: IntArray, part: IntArray, rest: IntArray, counts: IntArray) -> IntArray:
    """The clusters (M,) after one is cut in two; `part` and `rest` are the ascending places of its two parts.

    The part with the first institution keeps the cluster's number, the other gets the next free one. Members without
    training samples are in neither part: they go with the part that has more samples, by their `counts` (M,).
    """
    first, second = sorted((part, rest), key=lambda places: int(places[0]))
    number, free = clusters[first[0]], clusters.max() + 1
    finer = clusters.copy()
    if counts[second].sum() > counts[first].sum():
        finer[clusters == number] = free
    finer[first], finer[second] = number, free
    return finer


# Clustered federated learning of graphs: GCFL and GCFL+ (Xie et al. 2021).
#
# All institutions begin in one cluster. The server knows the update Delta_i = W_i(after local training) - W_i(sent) of
# every institution. A cluster whose updates are large while their mean is small has found no model that suits all of
# them, and is cut in two. Institutions of one cluster share one model, from the round of the cut on:
#
#     W_i <- W_i + sum_j n_j Delta_j / sum_j n_j = sum_j n_j (W_j after training) / sum_j n_j,  j in the cluster of i

FEWEST = 3
"""Institutions with training samples in a cluster that can be cut."""


class GCFL(Server):
    """One model a cluster of institutions; every fold has clusters of its own.

    Args:
        institutions: codes in ascending order; all train in every round.
        start: shared tensors of the common initial model, name -> (F, ...). A reply has all of them.
        similarity: weights of the graph that is cut: `UpdateCosine` in GCFL, `GradientNorms` in GCFL+.
        eps1: a cluster is cut if the norm of its mean update is below this
        eps2: and the largest norm of an update above this.
        first_round: number of the first round after which clusters are cut, from 0; the paper's rounds after the 20th.
        clustering: `minimum_cut` is the paper's; `balanced` cuts off no single institution.
        weighting: of institutions inside a cluster, `equal` or by training samples.
    """

    def __init__(
        self,
        institutions: tuple[int, ...],
        start: Mapping[str, Tensor],
        similarity: Similarity,
        *,
        eps1: float,
        eps2: float,
        first_round: int = 20,
        clustering: Clustering = "minimum_cut",
        weighting: Literal["equal", "subjects"] = "subjects",
    ) -> None:
        super().__init__(institutions)
        self.similarity = similarity
        self.eps1, self.eps2, self.first_round, self.weighting = eps1, eps2, first_round, weighting
        self.tensors = {name: torch.stack([tensor] * len(institutions)) for name, tensor in start.items()}
        self.clustering, self._cut, self._folds = clustering, CUTS[clustering], len(next(iter(start.values())))
        self._clusters: list[IntArray] = []

    @property
    def clusters(self) -> IntArray:
        """(rounds, F, M) number of each institution's cluster after each round until now, also of a resumed training.

        Of two parts of a cluster the one with the first institution keeps the number.
        """
        return np.array(self._clusters, dtype=np.int64).reshape(-1, self._folds, len(self.institutions))

    @torch.no_grad()
    def aggregate(self, number: int, replies: Mapping[int, Message]) -> None:
        """Cut clusters, then average inside each; a cluster without contributions keeps its model.

        Raises:
            UserError: the weights of an institution are not finite.
        """
        ordered = [replies[code] for code in self.institutions]
        counts = torch.stack([reply.samples for reply in ordered]).cpu()
        updates = [self._updates(number, fold, counts[:, fold].numpy(), ordered) for fold in range(self._folds)]
        self.similarity.read(ordered)
        latest = self._clusters[-1] if self._clusters else np.zeros((self._folds, len(ordered)), dtype=np.int64)
        if number >= self.first_round:
            each = zip(latest, counts.numpy().T, updates, strict=True)
            latest = np.stack([self._after_cuts(fold, *parts) for fold, parts in enumerate(each)])
        self._clusters.append(latest)
        self._average(ordered, counts)

    def broadcast(self, number: int) -> Mapping[int, Message]:
        """To every institution the model of its cluster; nothing before the first round."""
        if number == 0:
            return {}
        return {
            code: Message({name: tensor[place] for name, tensor in self.tensors.items()})
            for place, code in enumerate(self.institutions)
        }

    def state(self) -> dict[str, NDArray[Any]]:
        """The models, the clusters of all rounds, and what the similarity keeps."""
        return {"clusters": self.clusters, **super().state(), **self.similarity.state()}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a `state`."""
        super().load(arrays)
        self._clusters = list(arrays["clusters"].copy())
        self.similarity.load(arrays)

    def kept(self) -> Mapping[str, Tensor]:
        """The models."""
        return {f"model/{name}": tensor for name, tensor in self.tensors.items()}

    def _updates(self, number: int, fold: int, counts: IntArray, replies: Sequence[Message]) -> Tensor:
        """(m, P) updates of the shared weights of the institutions with training samples in a fold."""
        places = np.flatnonzero(counts > 0).tolist()
        if not places:
            return torch.empty(0, 0)
        parts = [
            torch.stack([replies[place].tensors[name][fold] for place in places]) - sent[places, fold]
            for name, sent in self.tensors.items()
        ]
        updates = torch.cat([part.reshape(len(places), -1) for part in parts], dim=1)
        finite = _norms(updates).isfinite()
        if not finite.all():
            code = self.institutions[places[int(finite.int().argmin())]]
            raise UserError(
                f"training of institution {code} (fold {fold}, round {number + 1}): expected finite weights, "
                "found NaN or infinite ones; lower learning_rate"
            )
        return updates

    def _after_cuts(self, fold: int, clusters: IntArray, counts: IntArray, updates: Tensor) -> IntArray:
        """(M,) the clusters of a fold after a round; new parts are not cut again."""
        places = np.flatnonzero(counts > 0)
        finer = clusters
        for cluster in np.unique(clusters):
            rows = np.flatnonzero(clusters[places] == cluster)
            if len(rows) < FEWEST or not self.similarity.ready(fold) or not self._disagree(updates[rows]):
                continue
            part = self._cut(self.similarity.weights(fold, places[rows], updates[rows]))
            finer = split(finer, places[rows[part]], places[rows[~part]], counts)
            self.similarity.forget(fold)
        return finer

    def _disagree(self, updates: Tensor) -> bool:
        """Whether a cluster's updates (m, P) are large while their mean is small."""
        mean = updates.mean(dim=0, dtype=torch.float64).norm()
        return bool(mean < self.eps1) and bool(_norms(updates).max() > self.eps2)

    def _average(self, replies: Sequence[Message], counts: Tensor) -> None:
        """Set the models to the means inside clusters; counts (M, F) are numbers of training samples."""
        clusters = torch.from_numpy(self._clusters[-1]).T
        for cluster in range(int(clusters.max()) + 1):
            inside = clusters == cluster
            weights = institution_weights(counts * inside, self.weighting)
            places = torch.nonzero(inside.any(dim=1))[:, 0].tolist()
            shared = [{name: replies[place].tensors[name] for name in self.tensors} for place in places]
            means = average(shared, weights[places])
            for place in places:
                folds = torch.nonzero(inside[place] & (weights.sum(dim=0) > 0))[:, 0]
                for name, mean in means.items():
                    self.tensors[name][place, folds] = mean[folds]


def _norms(rows: Tensor) -> Tensor:
    """(m,) float64; one that is not finite shows an entry that is not."""
    norms: Tensor = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64)
    return norms
