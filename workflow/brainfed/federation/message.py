"""The content of one institution's traffic with the server in one round."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class Message:
    """Named tensors that leave or reach one institution; tensors that are not shared never enter one.

    Attributes:
        tensors: name -> (F, ...), folds first. Views of the sender's own, no copies: valid until the next round, and
            the noise of the wire stays on them until the server's answer.
        samples: of a reply, (F,) the number of training samples behind it; 0: no part is taken in that fold.
        plain: names of tensors to which the wire adds no noise: no learnable weights, but the moments of a batch
            normalisation, or gradients.
        summed: whether the tensors are the sum over all replies of the round, formed by the senders in one memory
            instead of one for each; a real institution sends its own part, of the same shape.
    """

    tensors: Mapping[str, Tensor]
    samples: Tensor = field(default_factory=lambda: torch.ones(1, dtype=torch.int64))
    plain: frozenset[str] = frozenset()
    summed: bool = False

    @property
    def in_first_fold(self) -> bool:
        """Whether it crosses in the first fold, the one whose traffic is counted: a real federation trains once."""
        return bool(self.samples[0] > 0)
