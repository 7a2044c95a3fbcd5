"""The tensors between one institution and the server in one round."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

GRADIENT_NORM = "gradient-norm"
"""Name of a reply's tensor (F,): norm of the gradient of the shared parameters in the last local step (GCFL+)."""


@dataclass(frozen=True)
class Message:
    """Named tensors that leave or reach one institution; tensors that are not shared never enter one.

    Attributes:
        tensors: name -> (F, ...), folds first. Views of the sender's tensors, valid until the next round; the wire's
            noise stays on them until the server's answer.
        samples: of a reply, (F,) numbers of training samples; 0: the institution takes no part in that fold.
        plain: names of tensors without noise: moments of a batch normalisation, or gradients.
        rows: entries of the first axis in the first fold, of tensors that are padded to the largest fold; None: all.
        summed: whether the tensors are the sum over all replies of the round, in one memory; a real institution sends
            its own part, of the same shape.
    """

    tensors: Mapping[str, Tensor]
    samples: Tensor = field(default_factory=lambda: torch.ones(1, dtype=torch.int64))
    plain: frozenset[str] = frozenset()
    summed: bool = False
    rows: int | None = None

    def sent(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor that crosses in the first fold."""
        shape = tuple(self.tensors[name].shape[1:])
        return shape if self.rows is None else (self.rows, *shape[1:])

    @property
    def in_first_fold(self) -> bool:
        """Whether it crosses in the first fold. Only this fold is counted: a real federation trains once."""
        return bool(self.samples[0] > 0)
