"""Attacks of poisoned institutions: labels in reverse, uploads far away, falsified updates."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation._message import Message
from brainfed.federation._noise import normal
from brainfed.federation._settings import RobustnessSettings, share_of
from brainfed.federation._wire import Attack
from brainfed.federation.strategies import average
from brainfed.runtime import Streams

IntArray = NDArray[np.int64]


def attacked_institutions(share: float, institutions: int, streams: Streams) -> frozenset[int]:
    """Codes of the first ceil(share M) of a random order of M institutions; a larger share includes a smaller one's."""
    order = streams.numpy("attacked").permutation(institutions)
    return frozenset(order[: share_of(share, institutions)].tolist())


def flipped_labels(labels: IntArray, institution: IntArray, attacked: Collection[int], classes: int) -> IntArray:
    """(F, n) labels, c -> C - 1 - c for the subjects of attacked institutions; negative labels are hidden, and stay.

    Of three classes the middle one stays, too. `institution` (n,) is the code of each subject's institution.
    """
    turned = (labels >= 0) & np.isin(institution, list(attacked))
    return np.where(turned, classes - 1 - labels, labels)


@dataclass(frozen=True)
class Federation:
    """What an attack has to know of a training.

    Attributes:
        institutions: their number.
        folds: fold number of each position of the fold axis.
        start: tensors (F, ...) that all institutions begin with, by name.
        rows: entries of the first axis that each fold has; those behind are padding and stay. Empty: all.
    """

    institutions: int
    folds: tuple[int, ...]
    streams: Streams
    start: Mapping[str, Tensor]
    rows: tuple[int, ...] = ()


# Uploads far from all others: PAF and OFOM (GAHFL eq. 8 and 9; Chang et al. 2021).

FAR = 10.0
"""Length of the far vector, in norms of the benign mean; the paper has it arbitrarily large."""

LONGEST = 1e6
"""Largest length of a far vector: without a defence the mean, and with it the vector, grows in every round."""


@dataclass(frozen=True)
class FarUploads:
    """Uploads of the attacked institutions in place of their own; every fold for itself.

    The benign mean of a fold is that of the institutions that take part in it and are not attacked, all of equal
    weight. If none is left, it is the mean of what the attacked ones would have sent.

    With `ofom` only the first attacked institution that takes part in a fold is far, and all others send the mean of
    the benign uploads and the far one (OFOM); else each is far in a direction of its own (PAF).
    """

    attacked: Collection[int]
    federation: Federation
    ofom: bool

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
        if self.ofom:
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
        taken, sent = torch.zeros(len(self.federation.folds), dtype=torch.bool), {}
        for code, takes_part in present.items():
            first = takes_part & ~taken
            taken |= takes_part
            sent[code] = {
                name: torch.where(_of_folds(first, tensor) > 0, far[name], tensor) for name, tensor in joined.items()
            }
        return sent

    def _far(self, number: int, mean: Mapping[str, Tensor], *parts: int) -> dict[str, Tensor]:
        """The mean (F, ...) plus a vector of `FAR` times its norm, all tensors of a fold taken together."""
        places = range(len(self.federation.folds))
        drawn = {
            name: torch.stack([self._direction(place, tensor.shape[1:], number, name, *parts) for place in places])
            for name, tensor in mean.items()
        }
        length = (FAR * _norms(list(mean.values()))).clamp(max=LONGEST) / _norms(list(drawn.values()))
        return {name: tensor + _of_folds(length, tensor) * drawn[name].to(tensor) for name, tensor in mean.items()}

    def _direction(self, place: int, shape: Sequence[int], *parts: int | str) -> Tensor:
        """A random direction of a tensor in the fold at this place, zero in its padding."""
        rows, streams, fold = self.federation.rows, self.federation.streams, self.federation.folds[place]
        if not rows:
            return normal(streams, shape, "far-upload", fold, *parts)
        drawn = normal(streams, (rows[place], *shape[1:]), "far-upload", fold, *parts)
        return torch.cat([drawn, drawn.new_zeros(shape[0] - rows[place], *shape[1:])])


def _norms(tensors: Sequence[Tensor]) -> Tensor:
    """(F,) norms over all tensors (F, ...) of a fold, on the CPU in float64."""
    squares = [tensor.double().square().reshape(len(tensor), -1).sum(dim=1).cpu() for tensor in tensors]
    return torch.stack(squares).sum(dim=0).sqrt()


def _of_folds(values: Tensor, like: Tensor) -> Tensor:
    """Values (F,) in the shape (F, 1, ...) of a tensor."""
    return values.to(like).reshape(-1, *(1 for _ in like.shape[1:]))


# Uploads with a falsified update: its sign turned, or its length (Fang et al. 2020; Bagdasaryan et al. 2020).

TURNED, SCALED = -1.0, 10.0
"""Factors of an update."""


@torch.no_grad()
def _false_updates(
    attacked: frozenset[int],
    factor: float,
    start: Mapping[str, Tensor],
    _number: int,
    replies: Mapping[int, Message],
    sent: Mapping[int, Message],
) -> Mapping[int, Message]:
    """The replies of a round in which attacked institutions send began + factor x (reply - began), new tensors.

    A tensor began as what the institution last received under its name; before the first answer, as that of `start`,
    tensors (F, ...) that all institutions begin with. One that the server never sends, such as logits, began as zero:
    it is multiplied.
    """
    falsified = {}
    for code in replies.keys() & attacked:
        received = {**start, **(sent[code].tensors if code in sent else {})}
        tensors = {}
        for name, tensor in replies[code].tensors.items():
            began = received.get(name, torch.zeros_like(tensor)).to(tensor)
            tensors[name] = began + factor * (tensor - began)
        falsified[code] = replace(replies[code], tensors=tensors)
    return {**replies, **falsified}


def attack_of(settings: RobustnessSettings, federation: Federation) -> Attack | None:
    """The attack on replies; None without one, and for one on labels, which happens at home."""
    if not settings.poisons or settings.attack == "label_flip":
        return None
    attacked = attacked_institutions(settings.attacked, federation.institutions, federation.streams)
    if settings.attack in ("sign_flip", "scale"):
        start = {name: tensor.clone() for name, tensor in federation.start.items()}
        return partial(_false_updates, attacked, TURNED if settings.attack == "sign_flip" else SCALED, start)
    return FarUploads(attacked, federation, ofom=settings.attack == "ofom")
