"""The server of a ridge regression solved by conjugate gradients, for several penalties and training sets at once.

A round sends one direction q down and the sum of the institutions' Z' Z q up. With full orthogonalisation the
directions are an orthonormal basis Q of the Krylov space of A = Z' Z - n mu mu', and T = Q' A Q is tridiagonal
(Lanczos). The k-th iterate of conjugate gradients is w = Q (T + alpha I)^-1 e_1 |b|, for every penalty alpha from the
same directions (Saad 2003, Iterative Methods for Sparse Linear Systems, Sec. 6.7; the shifts: Frommer and Maass 1999).
The institutions keep the products of their subjects with the directions, so weights never cross: the coefficients of
the directions do.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.message import Message
from brainfed.federation.strategies.krylov_space import KrylovSpaces

Phase = Literal["moments", "search", "validation", "refinement", "done"]
PHASES: tuple[Phase, ...] = ("moments", "search", "validation", "refinement", "done")
SEARCH_TOLERANCE = 1e-3
"""Bound of a score's error at which penalties are compared."""


class Krylov:
    """Solves C ridge regressions, each with the penalty of the smallest loss of held-out subjects.

    System s = j C + c is model c, trained without the inner fold j - 1; with j = 0 on all training subjects. The search
    sends directions of all systems until all penalties can be compared; the refinement, of those with j = 0 alone.

    Args:
        institutions: codes.
        models: number of models C.
        penalties: A values of alpha, ascending; with a single one there is no search.
        rounds: most directions K.
        tolerance: bound of every score's error, for features of norm 1, at which the last direction is sent.
    """

    def __init__(
        self, institutions: tuple[int, ...], models: int, penalties: Sequence[float], rounds: int, tolerance: float
    ) -> None:
        self.institutions, self.models = institutions, models
        self.penalties = torch.tensor(penalties, dtype=torch.float64)
        self.rounds, self.tolerance = rounds, tolerance
        self.chosen = torch.zeros(models, dtype=torch.int64)
        self._spaces: KrylovSpaces | None = None
        self._phase: Phase = "moments"

    @property
    def spaces(self) -> KrylovSpaces:
        """The spaces of all systems; after the search, of the C models on all training subjects."""
        assert self._spaces is not None, "the institutions have sent no moments"
        return self._spaces

    def choose(self, _number: int) -> tuple[int, ...]:
        """All institutions."""
        return self.institutions

    def finished(self) -> bool:
        """Whether the solution is known."""
        return self._phase == "done"

    def aggregate(self, _number: int, replies: Mapping[int, Message]) -> None:
        """Sums over institutions of: moments, then products with the directions, then losses of held-out subjects."""
        found = {name: tensor[0] for name, tensor in _total(replies).items()}
        if self._phase == "moments":
            self._spaces = KrylovSpaces.of(
                found["count"], found["feature-sum"], found["target-sum"], found["feature-target-sum"], self.rounds
            )
            self._phase = "search" if len(self.penalties) > 1 else "refinement"
        elif self._phase == "validation":
            self.chosen = strongest_of_the_best(found["loss"], found["held-out"], self.models)
            self._spaces, self._phase = self.spaces.first(self.models), "refinement"
        else:
            self.spaces.extend(found["product" if self._phase == "search" else "last-product"])
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
        if not tensors:
            return {}
        return dict.fromkeys(self.institutions, Message({name: tensor[None] for name, tensor in tensors.items()}))

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
        phase = torch.tensor(PHASES.index(self._phase))
        return {"phase": phase.numpy(), "chosen": self.chosen.numpy(), **spaces}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy a state."""
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

    Args:
        loss: (S, A) sums of squared errors of the held-out subjects of each system.
        held_out: (S,) their numbers; 0 for a system without held-out subjects.
        models: C.
    """
    counted = held_out > 0
    means = torch.where(counted[:, None], loss / held_out.clamp(min=1)[:, None], 0.0)
    by_model = means.view(-1, models, loss.shape[1]).sum(dim=0)
    return loss.shape[1] - 1 - by_model.flip(1).argmin(dim=1)
