"""Similarity-weighted aggregation (Chen and Su 2024, SWA, eq. 6).

    S(j) = max(cos(h_j, h_global), 0),   alpha = softmax(tau S),   w_global <- w_global + sum_j alpha_j w_j

h are the scores of a principal component analysis of the institutions' and the global weights. Taken literally, the
weights double in every round. Here w_j is an institution's update w_j - w_global, and w_global the update that the
server made a round before. With sum_j alpha_j = 1 the new model is the mean sum_j alpha_j w_j of the weights.

The analysis is not centred: centred vectors sum to zero, so that the institutions' scores together oppose the global
ones, and most cosines are clipped to zero. With all components the cosines are those of the updates themselves.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation import Message
from brainfed.federation.strategies._fedavg import FedAvg, Selection, average
from brainfed.runtime import UserError

FloatArray = NDArray[np.float64]

ROUNDING = 1e-7
"""Share of a vector's norm below which its scores are rounding."""


class SimilarityWeighted(FedAvg):
    """One shared model: the mean of the replies, weighted by their similarity to what the server did last.

    All institutions with training samples weigh the same in the first round, and after a round that changed nothing.

    Args:
        institutions: codes in ascending order.
        start: shared tensors of the initial model, name -> (F, ...).
        tau: of the softmax; at 0 all weigh the same, the larger the more the most similar one.
        components: of the principal component analysis, the largest first; None: all.
        literal: whether the formula holds as it is printed, with centred weights in place of updates.
    """

    def __init__(
        self,
        institutions: tuple[int, ...],
        start: Mapping[str, Tensor],
        tau: float = 10.0,
        components: int | None = None,
        *,
        literal: bool = False,
        selection: Selection | None = None,
    ) -> None:
        if components is not None and components < 1:
            raise ValueError(f"expected at least one component, found {components=}")
        super().__init__(institutions, start, selection=selection)
        self.tau, self.components, self.literal = tau, components, literal
        self.previous = {name: tensor.clone() for name, tensor in start.items()}
        """The model a round before."""
        self._folds = len(next(iter(start.values())))
        self._shares: list[FloatArray] = []

    @property
    def shares(self) -> FloatArray:
        """(T, F, M) alpha of each round until now, also of a resumed training; 0 where an institution took no part."""
        return np.array(self._shares).reshape(-1, self._folds, len(self.institutions))

    @torch.no_grad()
    def aggregate(self, number: int, replies: Mapping[int, Message]) -> None:
        """Weigh and average the replies, every fold for itself; a fold without contributions keeps its model.

        Raises:
            UserError: the weights of an institution are not finite.
        """
        shares = np.zeros((self._folds, len(self.institutions)))
        for fold in range(self._folds):
            places = [
                place
                for place, code in enumerate(self.institutions)
                if code in replies and replies[code].samples[fold] > 0
            ]
            if places:
                rows = [self._rows(number, fold, place, replies[self.institutions[place]]) for place in places]
                similarity = similarities(self._products(fold, rows), self.components)
                shares[fold, places] = similarity_weights(similarity, self.tau)
        self._shares.append(shares)
        self._average(replies, shares)

    def state(self) -> dict[str, NDArray[Any]]:
        """The model, the one before, and the shares of all rounds."""
        return {"shares": self.shares} | super().state()

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a `state`."""
        super().load(arrays)
        self._shares = list(arrays["shares"].copy())

    def kept(self) -> Mapping[str, Tensor]:
        """The model, and the one before."""
        models = {"model": self.tensors, "previous": self.previous}
        return {f"{which}/{name}": tensor for which, model in models.items() for name, tensor in model.items()}

    def _rows(self, number: int, fold: int, place: int, reply: Message) -> list[Tensor]:
        """The weights of an institution in a fold, (P,) a tensor in float64."""
        rows = [reply.tensors[name][fold].flatten().double() for name in self.tensors]
        if not all(row.isfinite().all() for row in rows):
            remedy = "choose the reading of updates, under which weights do not double" if self.literal else ""
            raise UserError(
                f"training of institution {self.institutions[place]} (fold {fold}, round {number + 1}): expected "
                f"finite weights, found NaN or infinite ones; {remedy or 'lower learning_rate'}"
            )
        return rows

    def _products(self, fold: int, every: Sequence[Sequence[Tensor]]) -> FloatArray:
        """(m + 1, m + 1) inner products of what the analysis reads of m institutions, and of the server last."""
        total = torch.zeros(len(every) + 1, len(every) + 1, dtype=torch.float64)
        for (name, tensor), *own in zip(self.tensors.items(), *every, strict=True):
            weights, sent = torch.stack(own), tensor[fold].flatten().double()
            if self.literal:
                rows = torch.cat([weights, sent[None]])
                rows = rows - rows.mean(dim=0)
            else:
                rows = torch.cat([weights - sent, (sent - self.previous[name][fold].flatten().double())[None]])
            total += (rows @ rows.T).cpu()
        return np.asarray(total.numpy())

    def _average(self, replies: Mapping[int, Message], shares: FloatArray) -> None:
        places = [place for place, code in enumerate(self.institutions) if code in replies]
        weights = torch.from_numpy(shares[:, places].T.copy())
        means = average([replies[self.institutions[place]].tensors for place in places], weights)
        kept = torch.from_numpy(shares.sum(axis=1) == 0)
        for name, mean in means.items():
            if self.literal:
                mean += self.tensors[name]
            mean[kept] = self.tensors[name][kept]
        self.previous, self.tensors = self.tensors, means


def similarities(products: FloatArray, components: int | None = None) -> FloatArray:
    """(m,) max(cos(h_j, h_global), 0) from the inner products (m + 1, m + 1) of the vectors, the global one last.

    The scores h of all vectors are the columns of the eigenvectors, by the roots of the eigenvalues, of the products;
    those of all components have the same inner products as the vectors. A vector of zeros has the cosine 0, and so has
    one without a share in the components.
    """
    lengths = norms = np.sqrt(np.diagonal(products))
    if components is not None:
        values, vectors = np.linalg.eigh(products)
        scores = (vectors * np.sqrt(values.clip(min=0)))[:, ::-1][:, :components]
        products = scores @ scores.T
        norms = np.sqrt(np.diagonal(products))
    known = (lengths > 0) & (norms > ROUNDING * lengths)
    cosines = np.zeros(len(products) - 1)
    np.divide(products[:-1, -1], norms[:-1] * norms[-1], out=cosines, where=known[:-1] & known[-1])
    return np.asarray(cosines.clip(0, 1))


def similarity_weights(similarity: FloatArray, tau: float) -> FloatArray:
    """(m,) softmax(tau S), S (m,)."""
    raw = np.exp(tau * (similarity - similarity.max()))
    return np.asarray(raw / raw.sum())
