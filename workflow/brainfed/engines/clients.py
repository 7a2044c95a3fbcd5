"""What all institutions with networks have in common, whatever their engine."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines.curves import Curves
from brainfed.federation.clients import Clients
from brainfed.federation.sharing import Content
from brainfed.samples.kept.fitted_model import FittedModel


class NetworkClients(Clients, ABC):
    """M institutions with one network in each of F folds; `engines.training` drives them.

    Attributes:
        samples: (M, F) numbers of training samples, on the CPU.
        curves: scores and losses of all rounds.
        parameters: number of parameters of a network; of several kinds, that of the largest.
        global_model: whether one model of all institutions scores those without training subjects.
    """

    samples: Tensor
    curves: Curves
    parameters: int
    global_model: bool

    @property
    def institutions(self) -> tuple[int, ...]:
        """Places of the institutions."""
        return tuple(range(len(self.samples)))

    def start(self) -> dict[str, Tensor]:
        """(F, ...) shared tensors before the first round; none where institutions send no parameters."""
        return {}

    @abstractmethod
    def content(self, place: int) -> Content:
        """What an institution without training subjects receives to be scored by this one's network of one fold."""

    @abstractmethod
    def member_probabilities(self) -> NDArray[np.float64]:
        """(1, M, F, n, C) probabilities of the training subjects of each fold by the last networks, NaN of others.

        The first axis is that of the rounds in an engine that has these probabilities after every round.
        """

    @abstractmethod
    def foreign_probabilities(
        self, teacher: int, place: int, position: int, tested: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """(b, C) probabilities of subjects of an institution that trains nothing in a fold, by another's last network.

        Args:
            teacher: the other institution.
            place: the institution without training subjects.
            position: place of the fold.
            tested: (b,) positions among the institution's subjects.
        """

    def kept_models(self) -> list[FittedModel]:
        """The model of every fold, for a run that keeps them; none of an engine whose models need other subjects."""
        return []

    def privacy_rows(self) -> list[dict[str, int | float | str]]:
        """The privacy that each institution has spent in each fold; none without privacy."""
        return []
