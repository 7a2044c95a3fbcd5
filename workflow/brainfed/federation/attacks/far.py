"""Uploads far from all others: PAF and OFOM (GAHFL eq. 8 and 9; Chang et al. 2021)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from brainfed.federation.aggregation import average
from brainfed.federation.message import Message
from brainfed.federation.privacy.weight_noise import normal
from brainfed.runtime.streams import Streams

FAR = 10.0
"""Length of the far vector, in norms of the benign mean; the paper has it arbitrarily large."""

LONGEST = 1e6
"""Largest length of a far vector: without a defence the mean, and with it the vector, grows in every round."""


@dataclass(frozen=True)
class FarUploads:
    """Uploads of the attacked institutions in place of their own; every fold for itself.

    The benign mean of a fold is that of the institutions that take part in it and are not attacked, all of equal
    weight. If none is left, it is the mean of what the attacked ones would have sent.

    Attributes:
        attacked: codes.
        streams: of the repeat.
        folds: fold number of each position of the fold axis.
        one: whether only the first attacked institution that takes part in a fold is far, and all others send the mean
            of the benign uploads and the far one (OFOM); else each is far in a direction of its own (PAF).
        rows: entries of the first axis that each fold has; those behind are padding and stay. Empty: all.
    """

    attacked: Collection[int]
    streams: Streams
    folds: tuple[int, ...]
    one: bool = False
    rows: tuple[int, ...] = ()

    @torch.no_grad()
    def __call__(
        self, number: int, replies: Mapping[int, Message], _sent: Mapping[int, Message]
    ) -> Mapping[int, Message]:
        """The replies of round `number`; those of attacked institutions are new tensors."""
        poisoned = [code for code in sorted(replies) if code in self.attacked]
        if not poisoned:
            return replies
        codes = sorted(replies)
        present = torch.stack([replies[code].samples > 0 for code in codes])
        honest = present & torch.tensor([code not in self.attacked for code in codes])[:, None]
        honest |= present & ~honest.any(dim=0)
        count = honest.sum(dim=0)
        mean = average([replies[code].tensors for code in codes], honest / count.clamp(min=1))
        if self.one:
            sent = self._one_far(number, mean, count, {code: replies[code].samples > 0 for code in poisoned})
        else:
            sent = {code: self._far(number, mean, code) for code in poisoned}
        return {**replies, **{code: replace(replies[code], tensors=tensors) for code, tensors in sent.items()}}

    def _one_far(
        self, number: int, mean: Mapping[str, Tensor], count: Tensor, present: Mapping[int, Tensor]
    ) -> dict[int, dict[str, Tensor]]:
        far = self._far(number, mean)
        share = 1 / (count + 1)
        joined = {name: tensor + _of_folds(share, tensor) * (far[name] - tensor) for name, tensor in mean.items()}
        taken, found = torch.zeros(len(self.folds), dtype=torch.bool), {}
        for code, takes_part in present.items():
            first = takes_part & ~taken
            taken |= takes_part
            found[code] = {
                name: torch.where(_of_folds(first, tensor) > 0, far[name], tensor) for name, tensor in joined.items()
            }
        return found

    def _far(self, number: int, mean: Mapping[str, Tensor], *parts: int) -> dict[str, Tensor]:
        """The mean (F, ...) plus a vector of `FAR` times its norm, all tensors of a fold taken together."""
        drawn = {
            name: torch.stack(
                [self._direction(place, tensor.shape[1:], number, name, *parts) for place in range(len(self.folds))]
            )
            for name, tensor in mean.items()
        }
        length = (FAR * _norms(list(mean.values()))).clamp(max=LONGEST) / _norms(list(drawn.values()))
        return {name: tensor + _of_folds(length, tensor) * drawn[name].to(tensor) for name, tensor in mean.items()}

    def _direction(self, place: int, shape: Sequence[int], *parts: int | str) -> Tensor:
        """A random direction of a tensor in the fold at this place, zero in its padding."""
        held = (self.rows[place], *shape[1:]) if self.rows else shape
        drawn = normal(self.streams, held, "far-upload", self.folds[place], *parts)
        return torch.cat([drawn, drawn.new_zeros(shape[0] - held[0], *shape[1:])]) if self.rows else drawn


def _norms(tensors: Sequence[Tensor]) -> Tensor:
    """(F,) norms over all tensors (F, ...) of a fold, on the CPU in float64."""
    squares = [tensor.double().square().reshape(len(tensor), -1).sum(dim=1).cpu() for tensor in tensors]
    return torch.stack(squares).sum(dim=0).sqrt()


def _of_folds(values: Tensor, like: Tensor) -> Tensor:
    """Values (F,) in the shape (F, 1, ...) of a tensor."""
    return values.to(like).reshape(-1, *(1 for _ in like.shape[1:]))
