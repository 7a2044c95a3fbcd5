"""What passes between an institution and the server in one round."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class Message:
    """Named tensors that leave or reach one institution; what is not shared never enters one.

    Attributes:
        tensors: name -> (F, ...), folds first; views of what the sender holds, no copies.
        samples: (F,) how many training samples they rest on. None of them: no part is taken in that fold.
        moments: names that are no learnable weights, such as a batch normalisation's; no noise is added to them.
    """

    tensors: Mapping[str, Tensor]
    samples: Tensor = field(default_factory=lambda: torch.ones(1, dtype=torch.int64))
    moments: frozenset[str] = frozenset()

    @property
    def counted(self) -> bool:
        """Whether it crosses in the first fold, the one whose traffic is counted: a real federation trains once."""
        return bool(self.samples[0] > 0)
