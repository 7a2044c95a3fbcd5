"""Clustered federated learning of graphs: GCFL and GCFL+ (Xie et al. 2021).

All institutions begin in one cluster. The server knows the update Delta_i = W_i(after local training) - W_i(sent) of
every institution. A cluster whose updates are large while their mean is small has found no model that suits all of
them, and is cut in two. Institutions of one cluster share one model, from the round of the cut on:

    W_i <- W_i + sum_j n_j Delta_j / sum_j n_j = sum_j n_j (W_j after training) / sum_j n_j,  j in the cluster of i
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.aggregation import average, institution_weights
from brainfed.federation.message import Message
from brainfed.federation.strategies.clusters import CUTS, Clustering, IntArray, split
from brainfed.federation.strategies.similarity import Similarity
from brainfed.runtime.errors import UserError

FEWEST = 3
"""Institutions with training samples in a cluster that can be cut."""


class GCFL:
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
        self.institutions, self.similarity = institutions, similarity
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

    def choose(self, _number: int) -> tuple[int, ...]:
        """All institutions."""
        return self.institutions

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
        models = {f"model/{name}": tensor.cpu().numpy() for name, tensor in self.tensors.items()}
        return {"clusters": self.clusters, **models, **self.similarity.state()}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy a state."""
        for name, tensor in self.tensors.items():
            tensor.copy_(torch.from_numpy(arrays[f"model/{name}"]))
        self._clusters = list(arrays["clusters"].copy())
        self.similarity.load(arrays)

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
        found = clusters
        for cluster in np.unique(clusters):
            rows = np.flatnonzero(clusters[places] == cluster)
            if len(rows) < FEWEST or not self.similarity.ready(fold) or not self._disagree(updates[rows]):
                continue
            part = self._cut(self.similarity.weights(fold, places[rows], updates[rows]))
            found = split(found, places[rows[part]], places[rows[~part]], counts)
            self.similarity.forget(fold)
        return found

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
    found: Tensor = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64)
    return found
