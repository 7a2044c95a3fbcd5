"""Institutions that send the loss and the gradient of logistic regressions at the server's point."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

from brainfed.federation.clients import Arrays
from brainfed.federation.message import Message


@dataclass(frozen=True)
class Member:
    """The training subjects of one institution.

    Attributes:
        rows: (n, d) standardised, of mean squared norm 1 over all institutions.
        targets: (n, P) 1 for the class of each model, else 0.
        kept: (n, P) 1 for the subjects that fit each model, else 0.
        held_out: (n, P) 1 for the subjects that judge each model, else 0; None: nothing judges.
    """

    rows: Tensor
    targets: Tensor
    kept: Tensor
    held_out: Tensor | None = None


class LogisticClients:
    """M institutions with P models, class against the rest.

    Args:
        members: of all institutions.
        institutions: places of those with training subjects, which alone take part. A real site that is left out
            is asked like all others, and replies with zeros.
        prefix: of the names on the wire.
    """

    def __init__(self, members: Sequence[Member], institutions: tuple[int, ...], prefix: str = "") -> None:
        self.members, self.institutions, self.prefix = members, institutions, prefix
        first = members[0]
        models, features = first.targets.shape[1], first.rows.shape[1]
        self.weight = first.rows.new_zeros(models, features)
        self.bias = first.rows.new_zeros(models)

    def fit(self, _number: int, chosen: Sequence[int]) -> Mapping[int, Message]:
        """Sums of the loss, float64, and of its gradient over the subjects of each institution."""
        return {place: self._reply(self.members[place]) for place in chosen}

    def receive(self, messages: Mapping[int, Message]) -> None:
        """Load the server's point, which is the same for all."""
        for message in list(messages.values())[:1]:
            self.weight = message.tensors[f"{self.prefix}weight"][0]
            self.bias = message.tensors[f"{self.prefix}bias"][0]

    def score(self, _number: int) -> str:
        """Nothing to measure."""
        return "gradient"

    def state(self, _number: int) -> Arrays:
        """Nothing: the server holds the models."""
        return {}

    def load(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Nothing."""

    def _reply(self, member: Member) -> Message:
        margins = member.rows @ self.weight.T + self.bias
        residual = (torch.sigmoid(margins) - member.targets) * member.kept
        losses = softplus((1 - 2 * member.targets) * margins).double()
        tensors = {
            "weight-gradient": residual.T @ member.rows,
            "bias-gradient": residual.sum(dim=0),
            "loss": (losses * member.kept).sum(dim=0),
        }
        if member.held_out is not None:
            tensors["validation-loss"] = (losses * member.held_out).sum(dim=0)
        named = {f"{self.prefix}{name}": tensor[None] for name, tensor in tensors.items()}
        takes_part = torch.tensor([int(len(member.rows) > 0)])
        return Message(named, takes_part, plain=frozenset(named))
