"""Federated averaging (McMahan et al. 2017, Algorithm 1; FedNI Algorithm 1, lines 9 and 15)."""

from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.aggregation import Weighting, average, institution_weights
from brainfed.federation.defences.defence import Defence
from brainfed.federation.message import Message
from brainfed.federation.selection import Selection


class FedAvg:
    """One shared model: the mean of the replies, or what a defence makes of them.

    Args:
        institutions: codes.
        start: shared tensors of the initial model, name -> (F, ...).
        weighting: `equal` is FedNI's 1/M, `subjects` the original's n_m / n.
        selection: of the institutions that train in a round; by default all.
        defence: in place of the mean.
    """

    def __init__(
        self,
        institutions: tuple[int, ...],
        start: Mapping[str, Tensor],
        weighting: Weighting = "equal",
        selection: Selection | None = None,
        defence: Defence | None = None,
    ) -> None:
        self.institutions, self.weighting = institutions, weighting
        self.tensors = {name: tensor.clone() for name, tensor in start.items()}
        self.selection, self.defence = selection, defence

    def choose(self, number: int) -> tuple[int, ...]:
        """The institutions drawn for this round."""
        return self.institutions if self.selection is None else self.selection(number)

    def aggregate(self, _number: int, replies: Mapping[int, Message]) -> None:
        """Average the replies, or defend against them; a fold without contributions keeps its model."""
        ordered = [replies[code] for code in sorted(replies)]
        counts = torch.stack([reply.samples for reply in ordered])
        weights = institution_weights(counts, self.weighting)
        every = [reply.tensors for reply in ordered]
        means = average(every, weights) if self.defence is None else self.defence(every, weights, self.tensors)
        for position in torch.nonzero(weights.sum(dim=0) == 0)[:, 0].tolist():
            for name, mean in means.items():
                mean[position] = self.tensors[name][position]
        self.tensors = means

    def broadcast(self, number: int) -> Mapping[int, Message]:
        """The model to all institutions; nothing before the first round."""
        if number == 0:
            return {}
        message = Message(self.tensors)
        return dict.fromkeys(self.institutions, message)

    def state(self) -> dict[str, NDArray[Any]]:
        """The model."""
        return {name: tensor.cpu().numpy() for name, tensor in self.tensors.items()}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy the model."""
        for name, tensor in self.tensors.items():
            tensor.copy_(torch.from_numpy(arrays[name]))
