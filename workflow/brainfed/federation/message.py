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
        moments: names that are no learnable weights, such as a batch normalisation's; no noise is added to them.
    """

    tensors: Mapping[str, Tensor]
    samples: Tensor = field(default_factory=lambda: torch.ones(1, dtype=torch.int64))
    moments: frozenset[str] = frozenset()

    @property
    def in_first_fold(self) -> bool:
        """Whether it crosses in the first fold, the one whose traffic is counted: a real federation trains once."""
        return bool(self.samples[0] > 0)
