"""Federated averaging (McMahan et al. 2017; FedNI Algorithm 1), its choice of clients, and training alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation import Defence, Message
from brainfed.runtime import Streams

# Weighted means over institutions (McMahan et al. 2017; FedNI Sec. III-C).

Weighting = Literal["equal", "subjects"]


def institution_weights(samples: Tensor, weighting: Weighting) -> Tensor:
    """(M, F) weights that sum to one over the institutions that have training samples; zeros in a fold without any.

    `equal` is FedNI's 1/M, `subjects` is FedAvg's n_m / n, of `samples` (M, F).
    """
    present = samples > 0
    raw = present.to(torch.float64) if weighting == "equal" else samples.to(torch.float64) * present
    return raw / raw.sum(dim=0, keepdim=True).clamp(min=1e-300)


def average(every: Sequence[Mapping[str, Tensor]], weights: Tensor) -> dict[str, Tensor]:
    """Weighted mean of the tensors (F, ...) of M institutions, by name; weights are (M, F)."""
    first, *others = every
    means = {}
    for name, tensor in first.items():
        shape = (*weights.shape, *(1 for _ in tensor.shape[1:]))
        weight = weights.to(tensor).reshape(shape)
        mean = weight[0] * tensor
        for place, other in enumerate(others, start=1):
            mean.addcmul_(weight[place].expand_as(mean), other[name])
        means[name] = mean
    return means


def choose(institutions: int, fraction: float, streams: Streams, round_index: int) -> tuple[int, ...]:
    """max(round(C M), 1) of the M institutions by FedAvg's fraction C, drawn without replacement, ascending."""
    count = max(round(fraction * institutions), 1)
    order = streams.numpy("client-selection", round_index).permutation(institutions)
    return tuple(sorted(order[:count].tolist()))


@dataclass(frozen=True)
class Selection:
    """The institutions of every round of a training, drawn by FedAvg's fraction C."""

    institutions: int
    fraction: float
    streams: Streams

    def __call__(self, number: int) -> tuple[int, ...]:
        """The institutions of round `number`."""
        return choose(self.institutions, self.fraction, self.streams, number)


# The server's part of a round: choose institutions, aggregate their replies, broadcast.


class Strategy(Protocol):
    """The loop's interface to a server."""

    def choose(self, number: int, /) -> tuple[int, ...]:
        """The institutions that train in round `number`."""

    def aggregate(self, number: int, replies: Mapping[int, Message], /) -> None:
        """Aggregate the replies of round `number`; their tensors are views that the next round overwrites."""

    def broadcast(self, number: int, /) -> Mapping[int, Message]:
        """The messages before round `number`, by institution; none where nothing is shared.

        The messages after the last round end the training. A resumed training calls this again for its first round.
        """

    def state(self) -> dict[str, NDArray[Any]]:
        """Arrays that later rounds depend on."""

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a `state`."""


class EndingStrategy(Strategy, Protocol):
    """A server that ends when it has converged, with a result."""

    def finished(self) -> bool:
        """Whether no further round is needed."""

    def published(self) -> dict[str, NDArray[Any]]:
        """What every institution learns of the result beside the last messages."""


class Server:
    """What servers have in common: all institutions train in every round, and a state is made of tensors."""

    def __init__(self, institutions: tuple[int, ...]) -> None:
        self.institutions = institutions

    def choose(self, _number: int) -> tuple[int, ...]:
        """All institutions."""
        return self.institutions

    def to_all(self, tensors: Mapping[str, Tensor]) -> Mapping[int, Message]:
        """One message to all institutions."""
        return dict.fromkeys(self.institutions, Message(tensors))

    def kept(self) -> Mapping[str, Tensor]:
        """The tensors that later rounds depend on."""
        return {}

    def state(self) -> dict[str, NDArray[Any]]:
        """What later rounds depend on, on the host."""
        return {name: tensor.cpu().numpy() for name, tensor in self.kept().items()}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a `state`."""
        for name, tensor in self.kept().items():
            tensor.copy_(torch.from_numpy(arrays[name]))


class Alone(Server):
    """Training without a server: all institutions, or one with pooled data, train in every round and send nothing."""

    def aggregate(self, _number: int, replies: Mapping[int, Message]) -> None:
        """No replies."""

    def broadcast(self, _number: int) -> Mapping[int, Message]:
        """Nothing."""
        return {}


# Federated averaging (McMahan et al. 2017, Algorithm 1; FedNI Algorithm 1, lines 9 and 15).


class FedAvg(Server):
    """One shared model: the mean of the replies, or what a defence makes of them; `start` are its tensors (F, ...)."""

    def __init__(
        self,
        institutions: tuple[int, ...],
        start: Mapping[str, Tensor],
        weighting: Weighting = "equal",
        selection: Selection | None = None,
        defence: Defence | None = None,
    ) -> None:
        super().__init__(institutions)
        self.tensors = {name: tensor.clone() for name, tensor in start.items()}
        self.weighting, self.selection, self.defence = weighting, selection, defence

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
        return self.to_all(self.tensors) if number else {}

    def kept(self) -> Mapping[str, Tensor]:
        """The model."""
        return self.tensors
