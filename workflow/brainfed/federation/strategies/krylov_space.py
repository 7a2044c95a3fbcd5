"""Krylov spaces of several ridge regressions: Lanczos with full orthogonalisation, and the solutions in them."""

from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

SMALLEST = 1e-13
"""Norm of a new direction, relative to its product, below which the space is complete."""


class KrylovSpaces:
    """S spaces of up to K directions of d numbers.

    Attributes:
        directions: (S, K + 1, d) orthonormal directions; zero beyond a complete space.
        diagonal, offdiagonal: (S, K) of T; `offdiagonal[:, k]` joins the directions k and k + 1.
        size: number of directions with a product.
        start: (S,) norm of the right-hand side b.
        count, target: (S,) number of training subjects n, and mean of their targets.
        mean: (S, d) mean mu of their features.
    """

    def __init__(
        self, directions: Tensor, diagonal: Tensor, offdiagonal: Tensor, size: int, start: Tensor, count: Tensor,
        target: Tensor, mean: Tensor,
    ) -> None:  # fmt: skip
        self.directions, self.diagonal, self.offdiagonal, self.size = directions, diagonal, offdiagonal, size
        self.start, self.count, self.target, self.mean = start, count, target, mean

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
        return cls(directions, empty[0], empty[1], 0, start, count, target, mean)

    @property
    def last(self) -> Tensor:
        """(S, d) the directions whose products come next."""
        return self.directions[:, self.size]

    def extend(self, products: Tensor) -> None:
        """Add the next directions.

        Args:
            products: (S, d) Z' Z q of `last`, summed over institutions.
        """
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
        """Coefficients (S, A, K) of the directions in the weights, and intercepts (S, A).

        Args:
            penalties: (S, A).
            size: use the first so many directions; all by default.
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
        return KrylovSpaces(
            self.directions[:systems].clone(),
            self.diagonal[:systems].clone(),
            self.offdiagonal[:systems].clone(),
            self.size,
            self.start[:systems],
            self.count[:systems],
            self.target[:systems],
            self.mean[:systems],
        )

    def _coefficients(self, penalties: Tensor, k: int) -> Tensor:
        between = self.offdiagonal[:, : k - 1]
        matrix = torch.diag_embed(self.diagonal[:, :k]) + torch.diag_embed(between, 1) + torch.diag_embed(between, -1)
        values, vectors = torch.linalg.eigh(matrix)
        scaled = vectors[:, 0, None, :] * self.start[:, None, None] / (values[:, None, :] + penalties[:, :, None])
        found = self.diagonal.new_zeros(*penalties.shape, self.diagonal.shape[1])
        found[:, :, :k] = torch.einsum("skv,sav->sak", vectors, scaled)
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, on the host."""
        tensors = {
            "directions": self.directions[:, : self.size + 1],
            "diagonal": self.diagonal,
            "offdiagonal": self.offdiagonal,
            "start": self.start,
            "count": self.count,
            "target": self.target,
            "mean": self.mean,
        }
        return {name: tensor.cpu().numpy() for name, tensor in tensors.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], rounds: int) -> "KrylovSpaces":
        """From `arrays`."""
        held = {name: torch.from_numpy(array.copy()) for name, array in arrays.items() if name != "phase"}
        systems, known, d = held["directions"].shape
        directions = held["directions"].new_zeros(systems, rounds + 1, d)
        directions[:, :known] = held["directions"]
        return cls(
            directions, held["diagonal"], held["offdiagonal"], known - 1, held["start"], held["count"],
            held["target"], held["mean"],
        )  # fmt: skip


def _unit(vectors: Tensor, norms: Tensor, least: Tensor) -> Tensor:
    """(S, d) of norm 1; zero where the norm is not above `least`."""
    kept = norms > least
    return torch.where(kept[:, None], vectors / torch.where(kept, norms, 1.0)[:, None], 0.0)
