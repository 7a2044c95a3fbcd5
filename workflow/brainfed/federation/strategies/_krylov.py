"""The server of a ridge regression solved by conjugate gradients, and the Krylov spaces that it solves in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation import Message
from brainfed.federation.strategies._fedavg import Server

# Krylov spaces of several ridge regressions: Lanczos with full orthogonalisation, and the solutions in them.

Phase = Literal["moments", "search", "validation", "refinement", "done"]

TENSORS = ("directions", "diagonal", "offdiagonal", "start", "count", "target", "mean")
"""Fields of the spaces that are tensors, systems first."""
SMALLEST = 1e-13
"""Norm of a new direction, relative to its product, below which the space is complete."""


@dataclass
class KrylovSpaces:
    """S spaces of up to K directions of d numbers.

    Attributes:
        directions: (S, K + 1, d) orthonormal directions; zero beyond a complete space.
        diagonal, offdiagonal: (S, K) of T; `offdiagonal[:, k]` joins the directions k and k + 1.
        start: (S,) norm of the right-hand side b.
        count, target: (S,) number of training subjects n, and mean of their targets.
        mean: (S, d) mean mu of their features.
        size: number of directions with a product.
    """

    directions: Tensor
    diagonal: Tensor
    offdiagonal: Tensor
    start: Tensor
    count: Tensor
    target: Tensor
    mean: Tensor
    size: int = 0

    @classmethod
    def of(cls, count: Tensor, features: Tensor, targets: Tensor, products: Tensor, rounds: int) -> "KrylovSpaces":
        """Empty spaces from sums over all training subjects.

        Args:
            count: (S,) numbers of subjects.
            features: (S, d) sums of their features z.
            targets: (S,) sums of their targets t.
            products: (S, d) sums of z t.
            rounds: K.
        """
        known = count.clamp(min=1)
        mean, target = features / known[:, None], targets / known
        right = products - targets[:, None] * mean
        norm, least = right.norm(dim=1), SMALLEST * products.norm(dim=1)
        start = torch.where(norm > least, norm, 0.0)
        directions = right.new_zeros(len(count), rounds + 1, right.shape[1])
        directions[:, 0] = _unit(right, norm, least)
        empty = right.new_zeros(2, len(count), rounds)
        return cls(directions, empty[0], empty[1], start, count, target, mean)

    @property
    def last(self) -> Tensor:
        """(S, d) the directions whose products come next."""
        return self.directions[:, self.size]

    def extend(self, products: Tensor) -> None:
        """Add the next directions, from the products Z' Z q (S, d) of `last`, summed over institutions."""
        latest, place = self.last, self.size
        centred = products - (self.count * (self.mean * latest).sum(dim=1))[:, None] * self.mean
        self.diagonal[:, place] = (latest * centred).sum(dim=1)
        known = self.directions[:, : place + 1]
        rest = centred
        # Twice is enough (Parlett 1998, Sec. 6.9).
        for _ in range(2):
            rest = rest - ((known @ rest[:, :, None]).mT @ known)[:, 0]
        norm = rest.norm(dim=1)
        self.offdiagonal[:, place] = torch.where(norm > SMALLEST * centred.norm(dim=1), norm, 0.0)
        self.directions[:, place + 1] = _unit(rest, norm, SMALLEST * centred.norm(dim=1))
        self.size += 1

    def solution(self, penalties: Tensor, size: int | None = None) -> tuple[Tensor, Tensor]:
        """Coefficients (S, A, K) of the directions in the weights, and intercepts (S, A), for penalties (S, A).

        Uses the first `size` directions; all by default.
        """
        coefficients = self._coefficients(penalties, self.size if size is None else size)
        known = self.directions[:, : self.diagonal.shape[1]]
        means = torch.einsum("skd,sd->sk", known, self.mean)
        return coefficients, self.target[:, None] - torch.einsum("sak,sk->sa", coefficients, means)

    def weights(self, penalties: Tensor) -> Tensor:
        """(S, A, d) weights of the solutions, for penalties (S, A)."""
        return self._coefficients(penalties, self.size) @ self.directions[:, : self.diagonal.shape[1]]

    def patterns(self, penalties: Tensor) -> Tensor:
        """(S, A, d) cov(Z) w / sd(Z w) of the solutions (Haufe et al. 2014, eq. 6); 0 where the score is constant.

        No further sum is needed: A Q is Q T plus one column, the next direction.
        """
        size, weights = self.size, self.weights(penalties)
        coefficients = self._coefficients(penalties, size)[:, :, :size]
        inside = coefficients * self.diagonal[:, None, :size]
        inside[:, :, 1:] += coefficients[:, :, :-1] * self.offdiagonal[:, None, : size - 1]
        inside[:, :, :-1] += coefficients[:, :, 1:] * self.offdiagonal[:, None, : size - 1]
        beyond = coefficients[:, :, -1:] * self.offdiagonal[:, None, size - 1 : size]
        covariance = torch.cat([inside, beyond], dim=2) @ self.directions[:, : size + 1] / self.count[:, None, None]
        variance = (weights * covariance).sum(dim=2, keepdim=True)
        return torch.where(variance > 0, covariance / variance.clamp(min=1e-300).sqrt(), 0.0)

    def error(self, penalties: Tensor) -> float:
        """Bound of |w - w*| over all systems and their penalties (S, A): norm of the residual over the penalty."""
        last = self._coefficients(penalties, self.size)[:, :, self.size - 1]
        residual = self.offdiagonal[:, self.size - 1, None] * last.abs()
        return float((residual / penalties).max())

    def first(self, systems: int) -> "KrylovSpaces":
        """The spaces of the first systems alone."""
        return KrylovSpaces(**{name: getattr(self, name)[:systems].clone() for name in TENSORS}, size=self.size)

    def _coefficients(self, penalties: Tensor, k: int) -> Tensor:
        between = self.offdiagonal[:, : k - 1]
        matrix = torch.diag_embed(self.diagonal[:, :k]) + torch.diag_embed(between, 1) + torch.diag_embed(between, -1)
        values, vectors = torch.linalg.eigh(matrix)
        scaled = vectors[:, 0, None, :] * self.start[:, None, None] / (values[:, None, :] + penalties[:, :, None])
        coefficients = self.diagonal.new_zeros(*penalties.shape, self.diagonal.shape[1])
        coefficients[:, :, :k] = torch.einsum("skv,sav->sak", vectors, scaled)
        return coefficients

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The tensors on the host, without the directions that are still empty."""
        arrays = {name: getattr(self, name).cpu().numpy() for name in TENSORS}
        return arrays | {"directions": arrays["directions"][:, : self.size + 1]}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], rounds: int) -> "KrylovSpaces":
        """From `arrays`, with room for the directions of all rounds."""
        tensors = {name: torch.from_numpy(arrays[name].copy()) for name in TENSORS}
        systems, known, d = tensors["directions"].shape
        directions = tensors["directions"].new_zeros(systems, rounds + 1, d)
        directions[:, :known] = tensors["directions"]
        return cls(**tensors | {"directions": directions}, size=known - 1)


def _unit(vectors: Tensor, norms: Tensor, least: Tensor) -> Tensor:
    """(S, d) of norm 1; zero where the norm is not above `least`."""
    kept = norms > least
    return torch.where(kept[:, None], vectors / torch.where(kept, norms, 1.0)[:, None], 0.0)


# The server of a ridge regression solved by conjugate gradients, for several penalties and training sets at once.
#
# A round sends one direction q down and the sum of the institutions' Z' Z q up. With full orthogonalisation the
# directions are an orthonormal basis Q of the Krylov space of A = Z' Z - n mu mu', and T = Q' A Q is tridiagonal
# (Lanczos). The k-th iterate of conjugate gradients is w = Q (T + alpha I)^-1 e_1 |b|, for every penalty alpha from the
# same directions (Saad 2003, Iterative Methods for Sparse Linear Systems, Sec. 6.7; the shifts: Frommer and Maass
# 1999). The institutions keep the products of their subjects with the directions, so weights never cross: the
# coefficients of the directions do.

PHASES: tuple[Phase, ...] = ("moments", "search", "validation", "refinement", "done")
SEARCH_TOLERANCE = 1e-3
"""Bound of a score's error at which penalties are compared."""


class Krylov(Server):
    """Solves C ridge regressions, each with the penalty of the smallest loss of held-out subjects.

    System s = j C + c is model c, trained without the inner fold j - 1; with j = 0 on all training subjects. The search
    sends directions of all systems until all penalties can be compared; the refinement, of those with j = 0 alone.

    Args:
        models: number of models C.
        penalties: A values of alpha, ascending; with a single one there is no search.
        rounds: most directions K.
        tolerance: bound of every score's error, for features of norm 1, at which the last direction is sent.
    """

    def __init__(
        self, institutions: tuple[int, ...], models: int, penalties: Sequence[float], rounds: int, tolerance: float
    ) -> None:
        super().__init__(institutions)
        self.penalties = torch.tensor(penalties, dtype=torch.float64)
        self.models, self.rounds, self.tolerance = models, rounds, tolerance
        self.chosen = torch.zeros(models, dtype=torch.int64)
        self._spaces: KrylovSpaces | None = None
        self._phase: Phase = "moments"

    @property
    def spaces(self) -> KrylovSpaces:
        """The spaces of all systems; after the search, of the C models on all training subjects."""
        assert self._spaces is not None, "the institutions have sent no moments"
        return self._spaces

    def finished(self) -> bool:
        """Whether the solution is known."""
        return self._phase == "done"

    def aggregate(self, _number: int, replies: Mapping[int, Message]) -> None:
        """Sums over institutions of: moments, then products with the directions, then losses of held-out subjects."""
        total = {name: tensor[0] for name, tensor in _total(replies).items()}
        if self._phase == "moments":
            self._spaces = KrylovSpaces.of(
                total["count"], total["feature-sum"], total["target-sum"], total["feature-target-sum"], self.rounds
            )
            self._phase = "search" if len(self.penalties) > 1 else "refinement"
        elif self._phase == "validation":
            self.chosen = strongest_of_the_best(total["loss"], total["held-out"], self.models)
            self._spaces, self._phase = self.spaces.first(self.models), "refinement"
        else:
            self.spaces.extend(total["product" if self._phase == "search" else "last-product"])
        if self._phase == "search" and self._ends(self.penalties.expand(len(self.spaces.start), -1), SEARCH_TOLERANCE):
            self._phase = "validation"
        if self._phase == "refinement" and self._ends(self.own_penalties(), self.tolerance):
            self._phase = "done"

    def broadcast(self, _number: int) -> Mapping[int, Message]:
        """Directions; before the losses, the coefficients of all penalties; at the end, those of the chosen ones."""
        tensors: dict[str, Tensor] = {}
        if self._phase == "search":
            tensors["direction"] = self.spaces.last
        elif self._phase == "validation":
            every = self.penalties.expand(len(self.spaces.start), -1)
            tensors["coefficients"], tensors["intercepts"] = self.spaces.solution(every)
        elif self._phase == "refinement":
            tensors["last-direction"] = self.spaces.last
        elif self._phase == "done":
            coefficients, intercepts = self.spaces.solution(self.own_penalties())
            tensors["last-coefficients"], tensors["last-intercepts"] = coefficients[:, 0], intercepts[:, 0]
        return self.to_all({name: tensor[None] for name, tensor in tensors.items()}) if tensors else {}

    def published(self) -> dict[str, NDArray[Any]]:
        """Weights (C, d), intercepts (C,) and patterns (C, d) of the models; bound of a score's error; directions."""
        penalties, spaces = self.own_penalties(), self.spaces
        tensors = {
            "weights": spaces.weights(penalties)[:, 0],
            "intercepts": spaces.solution(penalties)[1][:, 0],
            "patterns": spaces.patterns(penalties)[:, 0],
            "error": torch.tensor(spaces.error(penalties), dtype=torch.float64),
            "directions": torch.tensor(spaces.size),
        }
        return {name: tensor.cpu().numpy() for name, tensor in tensors.items()}

    def state(self) -> dict[str, NDArray[Any]]:
        """The spaces, the chosen penalties and the phase."""
        spaces = {} if self._spaces is None else self._spaces.arrays()
        return {"phase": np.array(PHASES.index(self._phase)), "chosen": self.chosen.numpy(), **spaces}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a `state`."""
        self._phase = PHASES[int(arrays["phase"])]
        self.chosen = torch.from_numpy(arrays["chosen"].copy())
        if "directions" in arrays:
            self._spaces = KrylovSpaces.from_arrays(arrays, self.rounds)

    def own_penalties(self) -> Tensor:
        """(C, 1) the penalty of each model."""
        return self.penalties[self.chosen][:, None]

    def _ends(self, penalties: Tensor, tolerance: float) -> bool:
        spaces = self.spaces
        return spaces.size > 0 and (spaces.size == self.rounds or spaces.error(penalties) <= tolerance)


def _total(replies: Mapping[int, Message]) -> Mapping[str, Tensor]:
    """The sum of the replies; a simulation hands out the sum itself."""
    first, *others = [replies[code] for code in sorted(replies)]
    if first.summed:
        return first.tensors
    return {
        name: torch.stack([tensor, *(each.tensors[name] for each in others)]).sum(dim=0)
        for name, tensor in first.tensors.items()
    }


def strongest_of_the_best(loss: Tensor, held_out: Tensor, models: int) -> Tensor:
    """(C,) positions of the penalties with the smallest mean loss over inner folds; of ties, the strongest.

    The loss (S, A) of a system sums the squared errors of its held-out subjects, of which `held_out` (S,) counts 0 or
    more.
    """
    counted = held_out > 0
    means = torch.where(counted[:, None], loss / held_out.clamp(min=1)[:, None], 0.0)
    by_model = means.view(-1, models, loss.shape[1]).sum(dim=0)
    return loss.shape[1] - 1 - by_model.flip(1).argmin(dim=1)
