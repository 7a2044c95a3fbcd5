"""Federated training of an owner's fGen at all other owners (Zhang et al. 2021, Sec. 4.3, Algorithm 1)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation import Adam, Arrays, Message, WeightNoise
from brainfed.inpainting.fedni import carried
from brainfed.inpainting.fedsage._local import (
    Draws,
    Owner,
    WideOutput,
    arrays_of,
    feature_generator,
    load_arrays,
    nearest_missing,
)
from brainfed.models import FeatureGenerator, GeneratorShape
from brainfed.runtime import below

LOSSES = ("feature", "feature_elsewhere")


class OwnersWithTargets:
    """All owners with missing neighbours, under either exchange.

    Args:
        home: code of the owner of the fGen that is trained; it is one of the hosts.

    Attributes:
        losses: (rounds, 2) at the owner of fGen, and the sum over the others.
    """

    def __init__(self, home: int, owners: Sequence[Owner], rounds: int) -> None:
        self.home, self.owners = home, {owner.institution: owner for owner in owners}
        self.institutions = tuple(self.owners)
        self.losses = np.zeros((rounds, len(LOSSES)))

    def add_loss(self, number: int, code: int, loss: float) -> None:
        """Add the loss of round `number` at one owner."""
        self.losses[number, int(code != self.home)] += loss

    def score(self, number: int) -> str:
        """The sum of the losses."""
        return f"loss {self.losses[number].sum():.4f}"

    def state(self, number: int) -> Arrays:
        """The losses."""
        return {"losses": self.losses[: number + 1]}

    def load(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a `state`."""
        self.losses[: number + 1] = arrays["losses"]


# Federated training of an owner's fGen by gradients of all other owners (Zhang et al. 2021, Sec. 4.3).
#
# The owner of fGen is the server of its training: it sends fGen's weights, with FedNI's noise on one copy for all
# hosts, and receives the sum of its loss's gradients at every host, itself included. Gradients get no noise: they are
# orders of magnitude smaller than weights.

WEIGHT, GRADIENT = "fgen.", "fgen-gradient."
FGEN, OPTIMISER = "fgen/", "adam/"


class Hosts(OwnersWithTargets):
    """All owners with missing neighbours, which train the fGen of one.

    Args:
        home: code of the owner of the fGen that is trained; it is one of the hosts.
        embeddings: institution -> (t, 128), each by its own encoder.
        wide: of fGen's last layer.
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
        self._borrowed: dict[int, FeatureGenerator] = {}

    def receive(self, messages: Mapping[int, Message]) -> None:
        """Borrow fGen's weights; hosts with equal weights share a module, and all modules add to one gradient."""
        modules: dict[int, FeatureGenerator] = {}
        for message in messages.values():
            if id(message) not in modules:
                weights = {name.removeprefix(WEIGHT): tensor[0] for name, tensor in message.tensors.items()}
                modules[id(message)] = feature_generator(self.shape, weights)
        self._borrowed = {code: modules[id(message)] for code, message in messages.items()}

    def fit(self, number: int, chosen: Sequence[int]) -> Mapping[int, Message]:
        """FedSage+ L^f of one owner over all hosts: its gradients, summed in one memory as in a secure aggregation.

        Hosts with equal weights are computed at once: one product has the nodes of all of them. The gradients are valid
        until the next call.
        """
        sharing: dict[FeatureGenerator, list[int]] = {}
        for code in chosen:
            sharing.setdefault(self._borrowed[code], []).append(code)
        total: dict[str, Tensor | None] = {}
        for fgen, codes in sharing.items():
            for name, parameter in fgen.named_parameters():
                parameter.grad = total.get(name)
            for code, loss in zip(codes, self._add_gradients(fgen, codes, number), strict=True):
                self.add_loss(number, code, loss)
            total = {name: parameter.grad for name, parameter in fgen.named_parameters()}
        sent = {f"{GRADIENT}{name}": gradient[None] for name, gradient in total.items() if gradient is not None}
        return dict.fromkeys(chosen, Message(sent, plain=frozenset(sent), summed=True))

    def _add_gradients(self, fgen: FeatureGenerator, codes: Sequence[int], number: int) -> list[float]:
        """The loss at each host; adds the gradients of their sum to fGen's."""
        expanded = torch.cat(
            [self.draws.expanded(fgen, self.embeddings[code], self.home, "federated", number, code) for code in codes]
        )
        targets = [self.owners[code].targets for code in codes]
        losses, back = self.wide.add_gradients(fgen.output, expanded.detach(), targets)
        carried(back, expanded).backward()  # type: ignore[no-untyped-call]
        return [float(loss) for loss in losses]


class FGenServer:
    """The owner of fGen as a server: one step a round, by the sum of the hosts' gradients.

    Args:
        fgen: trained in place.
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
        """Restore a `state`."""
        load_arrays(self.fgen, arrays, FGEN)
        self._done = int(arrays["done"])
        if self._done < self.rounds:
            self.optimiser.load(below(OPTIMISER, arrays))


# Federated training of fGen under `exchange: raw`, which reveals patients (Zhang et al. 2021, Algorithm 1).
#
# Hosts send the embeddings of their nodes once. The owner of fGen sends vectors generated from them. Hosts return one
# gradient a vector, 2 (generated - true) up to a known factor. Vectors for others come from a noisy copy of fGen, so
# the training equals that of `exchange: gradients` up to the order of sums.

EMBEDDING, GENERATED, RETURNED = "embedding", "generated", "generated-gradient"


def embeddings_sent(embeddings: Mapping[int, Tensor]) -> dict[int, Message]:
    """The hosts' first messages: their embeddings (t, 128)."""
    plain = frozenset({EMBEDDING})
    return {code: Message({EMBEDDING: embedding[None]}, plain=plain) for code, embedding in embeddings.items()}


class RawHosts(OwnersWithTargets):
    """All owners with missing neighbours; each returns the gradient of the loss by every vector.

    Args:
        home: code of the owner of fGen.
    """

    def __init__(self, home: int, owners: Sequence[Owner], rounds: int) -> None:
        super().__init__(home, owners, rounds)
        self._generated: dict[int, Tensor] = {}

    def receive(self, messages: Mapping[int, Message]) -> None:
        """Keep the vectors."""
        self._generated = {code: message.tensors[GENERATED][0] for code, message in messages.items()}

    def fit(self, number: int, chosen: Sequence[int]) -> Mapping[int, Message]:
        """Gradients of the squared error of every vector to its nearest missing neighbour."""
        replies = {}
        for code in chosen:
            targets, vectors = self.owners[code].targets, self._generated[code]
            nearest = nearest_missing(
                vectors @ targets.missing.T, targets.missing.square().sum(dim=1), targets.neighbours
            )
            error = vectors - targets.missing[nearest]
            entries = targets.visible * vectors.shape[1] * vectors.shape[2]
            self.add_loss(number, code, float(error.square().sum() / entries))
            replies[code] = Message({RETURNED: (error * (2 / entries))[None]}, plain=frozenset({RETURNED}))
        return replies


class RawFGenServer(FGenServer):
    """The owner of fGen as a server; it generates vectors from the hosts' embeddings.

    Args:
        embeddings: institution -> (t, 128) of the hosts, in their order.
        noise: on the copy of fGen for the others.
        fgen: trained in place.
    """

    def __init__(
        self,
        home: int,
        embeddings: Mapping[int, Tensor],
        draws: Draws,
        noise: WeightNoise,
        fgen: FeatureGenerator,
        learning_rate: float,
        rounds: int,
    ) -> None:
        super().__init__(tuple(embeddings), fgen, learning_rate, rounds)
        self.home, self.embeddings, self.draws, self.noise = home, embeddings, draws, noise
        self._noisy = fgen
        self._vectors: dict[int, Tensor] = {}

    def broadcast(self, number: int) -> Mapping[int, Message]:
        """Generated vectors before every round."""
        sent = super().broadcast(number)
        if not sent:
            return {}
        copy = self.noise.copies(number, self.home, sent)[self.hosts[0]]
        weights = {name.removeprefix(WEIGHT): tensor[0] for name, tensor in copy.tensors.items()}
        self._noisy = feature_generator(self.fgen.shape, weights)
        self._vectors = {code: self._generate(code, number) for code in self.hosts}
        plain = frozenset({GENERATED})
        return {
            code: Message({GENERATED: vectors.detach()[None]}, plain=plain) for code, vectors in self._vectors.items()
        }

    def aggregate(self, number: int, replies: Mapping[int, Message]) -> None:
        """One step of Adam by the gradients of all vectors."""
        for code, reply in replies.items():
            carried(reply.tensors[RETURNED][0], self._vectors[code]).backward()  # type: ignore[no-untyped-call]
        for parameter, noisy in zip(self.fgen.parameters(), self._noisy.parameters(), strict=True):
            if noisy.grad is not None:
                parameter.grad = noisy.grad if parameter.grad is None else parameter.grad + noisy.grad
        self.step(number)

    def _generate(self, code: int, number: int) -> Tensor:
        """(t, slots, d) in (-1, 1)."""
        fgen = self.fgen if code == self.home else self._noisy
        expanded = self.draws.expanded(fgen, self.embeddings[code], self.home, "federated", number, code)
        return torch.tanh(fgen.output(expanded)).view(len(expanded), fgen.shape.targets, fgen.shape.features)
