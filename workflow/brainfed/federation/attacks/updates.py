"""Uploads with a falsified update: its sign turned, or its length (Fang et al. 2020; Bagdasaryan et al. 2020)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from brainfed.federation.message import Message

TURNED, SCALED = -1.0, 10.0
"""Factors of an update."""


@dataclass(frozen=True)
class FalseUpdates:
    """The attacked institutions send start + factor x (reply - start).

    The start of a tensor is what the institution last received under its name; before the first answer, that of
    `start`. A tensor that the server never sends, such as logits, starts at zero: it is multiplied.

    Attributes:
        attacked: codes.
        factor: of the update.
        start: tensors (F, ...) that all institutions begin with, by name.
    """

    attacked: Collection[int]
    factor: float
    start: Mapping[str, Tensor]

    @torch.no_grad()
    def __call__(
        self, _number: int, replies: Mapping[int, Message], sent: Mapping[int, Message]
    ) -> Mapping[int, Message]:
        """The replies of a round; those of attacked institutions are new tensors."""
        return {
            code: self._poisoned(reply, {**self.start, **(sent[code].tensors if code in sent else {})})
            if code in self.attacked
            else reply
            for code, reply in replies.items()
        }

    def _poisoned(self, reply: Message, start: Mapping[str, Tensor]) -> Message:
        tensors = {}
        for name, tensor in reply.tensors.items():
            began = start.get(name, torch.zeros_like(tensor)).to(tensor)
            tensors[name] = began + self.factor * (tensor - began)
        return replace(reply, tensors=tensors)
