"""Federated training of an owner's fGen by gradients of all other owners (Zhang et al. 2021, Sec. 4.3).

The visiting owner is the server of its own training: it sends fGen's weights, with FedNI's noise on one copy for all
hosts, and receives the sum of its loss's gradients at every host, itself included. Gradients get no noise: they are
orders of magnitude smaller than weights.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.adam import Adam
from brainfed.federation.clients import Arrays
from brainfed.federation.message import Message
from brainfed.inpainting.backpropagation import carried
from brainfed.inpainting.fedsage.draws import Draws
from brainfed.inpainting.fedsage.owner import Owner
from brainfed.inpainting.fedsage.visited import Visited
from brainfed.inpainting.fedsage.weights import arrays_of, feature_generator, load_arrays
from brainfed.inpainting.fedsage.wide import WideOutput
from brainfed.models.fedsage_generator import FeatureGenerator, GeneratorShape

WEIGHT, GRADIENT = "fgen.", "fgen-gradient."
FGEN, OPTIMISER = "fgen/", "adam/"


class Hosts(Visited):
    """All owners with missing neighbours, while the fGen of one visits them.

    Args:
        home: code of the visiting owner, a host of its own fGen.
        owners: with missing neighbours.
        embeddings: institution -> (t, 128), each by its own encoder.
        shape: of fGen.
        draws: of the repeat.
        wide: of fGen's last layer.
        rounds: number of rounds.
    """

    def __init__(
        self,
        home: int,
        owners: Sequence[Owner],
        embeddings: Mapping[int, Tensor],
        shape: GeneratorShape,
        draws: Draws,
        wide: WideOutput,
        rounds: int,
    ) -> None:
        super().__init__(home, owners, rounds)
        self.embeddings, self.shape, self.draws, self.wide = embeddings, shape, draws, wide
        self._visitors: dict[int, FeatureGenerator] = {}

    def receive(self, messages: Mapping[int, Message]) -> None:
        """Borrow fGen's weights; hosts with equal weights share a module, and all modules add to one gradient."""
        visitors: dict[int, FeatureGenerator] = {}
        for message in messages.values():
            if id(message) not in visitors:
                weights = {name.removeprefix(WEIGHT): tensor[0] for name, tensor in message.tensors.items()}
                visitors[id(message)] = feature_generator(self.shape, weights)
        self._visitors = {code: visitors[id(message)] for code, message in messages.items()}

    def fit(self, number: int, chosen: Sequence[int]) -> Mapping[int, Message]:
        """FedSage+ L^f of one owner over all hosts: its gradients, summed in one memory as in a secure aggregation.

        Hosts with equal weights are visited at once: one product has the nodes of all of them. The gradients are valid
        until the next call.
        """
        visited: dict[FeatureGenerator, list[int]] = {}
        for code in chosen:
            visited.setdefault(self._visitors[code], []).append(code)
        total: dict[str, Tensor | None] = {}
        for fgen, codes in visited.items():
            for name, parameter in fgen.named_parameters():
                parameter.grad = total.get(name)
            for code, loss in zip(codes, self._visit(fgen, codes, number), strict=True):
                self.add_loss(number, code, loss)
            total = {name: parameter.grad for name, parameter in fgen.named_parameters()}
        sent = {f"{GRADIENT}{name}": gradient[None] for name, gradient in total.items() if gradient is not None}
        return dict.fromkeys(chosen, Message(sent, plain=frozenset(sent), summed=True))

    def _visit(self, fgen: FeatureGenerator, codes: Sequence[int], number: int) -> list[float]:
        """The loss at each host; adds the gradients of their sum to fGen's."""
        expanded = torch.cat(
            [self.draws.expanded(fgen, self.embeddings[code], self.home, "federated", number, code) for code in codes]
        )
        targets = [self.owners[code].targets for code in codes]
        losses, back = self.wide.add_gradients(fgen.output, expanded.detach(), targets)
        carried(back, expanded).backward()  # type: ignore[no-untyped-call]
        return [float(loss) for loss in losses]


class Visitor:
    """The visiting owner: one step of its fGen a round, by the sum of the hosts' gradients.

    Args:
        hosts: codes.
        fgen: trained in place.
        learning_rate: Adam's.
        rounds: number of rounds.
    """

    def __init__(self, hosts: tuple[int, ...], fgen: FeatureGenerator, learning_rate: float, rounds: int) -> None:
        self.hosts, self.fgen, self.rounds = hosts, fgen, rounds
        self.optimiser = Adam(list(fgen.parameters()), learning_rate)
        self._done = 0

    def choose(self, _number: int) -> tuple[int, ...]:
        """All hosts."""
        return self.hosts

    def broadcast(self, number: int) -> Mapping[int, Message]:
        """The weights before every round."""
        if number == self.rounds:
            return {}
        weights = {f"{WEIGHT}{name}": parameter.detach()[None] for name, parameter in self.fgen.named_parameters()}
        return dict.fromkeys(self.hosts, Message(weights))

    def aggregate(self, number: int, replies: Mapping[int, Message]) -> None:
        """One step of Adam."""
        for reply in list(replies.values())[:1]:
            for name, parameter in self.fgen.named_parameters():
                parameter.grad = reply.tensors[f"{GRADIENT}{name}"][0]
        self.step(number)

    def step(self, number: int) -> None:
        """Update fGen by its gradients."""
        self.optimiser.step()
        self.fgen.zero_grad()
        self._done = number + 1

    def state(self) -> Arrays:
        """The weights, and Adam's moments where another round follows."""
        more = self._done < self.rounds
        moments = {f"{OPTIMISER}{name}": array for name, array in self.optimiser.arrays().items()} if more else {}
        return arrays_of(self.fgen, FGEN) | moments | {"done": np.array(self._done)}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy a `state`."""
        load_arrays(self.fgen, arrays, FGEN)
        self._done = int(arrays["done"])
        if self._done < self.rounds:
            self.optimiser.load({name.removeprefix(OPTIMISER): arrays[name] for name in arrays})
