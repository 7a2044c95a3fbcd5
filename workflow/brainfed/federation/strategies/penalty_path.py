"""Choice of a penalty by federated inner folds: L-BFGS along ascending costs, each from the minimum of the one before.

The models of one group are fitted without one inner fold each. With the gradient every institution sends the loss of
its held-out subjects, one number a model. Once all models of a group have converged, a weaker penalty follows, until
the sum of these losses is far above the smallest. A small rise is no end: under strong penalties a model has little but
the direction of a common signal, whose loss says nothing on the others.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.message import Message
from brainfed.federation.strategies.quasi_newton import Objective, QuasiNewton

FAR = 1.1
"""Loss, as a multiple of the smallest so far, above which weaker penalties are not tried."""


class PenaltyPath:
    """G groups of models that share a penalty, 1 / (cost count).

    Args:
        institutions: codes.
        objective: of the P models.
        costs: ascending.
        groups: (P,) group of each model.
    """

    def __init__(
        self, institutions: tuple[int, ...], objective: Objective, costs: Sequence[float], groups: Tensor
    ) -> None:
        self.groups = groups
        self.costs = torch.tensor(costs, dtype=torch.float64, device=groups.device)
        self.counts = objective.counts.double().clamp(min=1)
        count = int(groups.max()) + 1
        self.place = torch.zeros(count, dtype=torch.int64, device=groups.device)
        self.best = self.place.clone()
        self.losses = torch.full((count,), torch.inf, dtype=torch.float64, device=groups.device)
        self.ended = torch.zeros(count, dtype=torch.bool, device=groups.device)
        self.server = QuasiNewton(institutions, objective, self._penalties())
        self.validation = torch.full_like(self.counts, torch.inf)

    def choose(self, number: int) -> tuple[int, ...]:
        """All institutions."""
        return self.server.choose(number)

    @property
    def rounds(self) -> int:
        """Number of rounds until now, also of a resumed training."""
        return self.server.rounds

    def finished(self) -> bool:
        """Whether every group has its penalty."""
        return bool(self.ended.all())

    def aggregate(self, number: int, replies: Mapping[int, Message]) -> None:
        """A round of all models; a group that has converged goes on to its next penalty or ends.

        Tensors of a reply: those of `QuasiNewton.aggregate`, and `validation-loss` (1, P).
        """
        self.server.aggregate(number, replies)
        found = self.server.total(replies, "validation-loss")
        self.validation = torch.where(self.server.accepted, found, self.validation)
        converged, moved = self.server.converged, False
        for group in torch.nonzero(~self.ended)[:, 0].tolist():
            own = self.groups == group
            if not bool(converged[own].all()):
                continue
            loss, last = self.validation[own].sum(), self.place[group] + 1 == len(self.costs)
            if loss < self.losses[group]:
                self.losses[group], self.best[group] = loss, self.place[group]
            self.ended[group] = last or bool(loss > FAR * self.losses[group])
            if not self.ended[group]:
                self.place[group] += 1
                moved = True
        if moved:
            self.server.repenalise(self._penalties())
            self.server.advance(number)

    def broadcast(self, number: int) -> Mapping[int, Message]:
        """The next points of all models."""
        return self.server.broadcast(number)

    def published(self) -> dict[str, NDArray[Any]]:
        """Cost of each group, and number of rounds."""
        return {"chosen": self.costs[self.best].cpu().numpy(), **self.server.published()}

    def state(self) -> dict[str, NDArray[Any]]:
        """The models and the place on the path."""
        own = {name: getattr(self, name).cpu().numpy() for name in self._own}
        return self.server.state() | own

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy a `state`."""
        self.server.load(arrays)
        for name in self._own:
            setattr(self, name, torch.from_numpy(np.array(arrays[name])).to(self.groups.device))

    _own = ("place", "best", "losses", "ended", "validation")

    def _penalties(self) -> Tensor:
        """(P,) of the groups' present costs."""
        return 1 / (self.costs[self.place][self.groups] * self.counts)
