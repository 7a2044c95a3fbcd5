"""Federated training of fGen under `exchange: raw`, which reveals patients (Zhang et al. 2021, Algorithm 1).

Hosts send the embeddings of their nodes once. The visiting owner sends vectors generated from them. Hosts return one
gradient a vector, 2 (generated - true) up to a known factor. Vectors for others come from a noisy copy of fGen, so the
training equals that of `exchange: gradients` up to the order of sums.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from brainfed.federation.message import Message
from brainfed.federation.privacy.weight_noise import WeightNoise
from brainfed.inpainting.backpropagation import carried
from brainfed.inpainting.fedsage.draws import Draws
from brainfed.inpainting.fedsage.losses import nearest_missing
from brainfed.inpainting.fedsage.owner import Owner
from brainfed.inpainting.fedsage.visited import Visited
from brainfed.inpainting.fedsage.visits import WEIGHT, Visitor
from brainfed.inpainting.fedsage.weights import feature_generator
from brainfed.models.fedsage_generator import FeatureGenerator

EMBEDDING, GENERATED, RETURNED = "embedding", "generated", "generated-gradient"


def embeddings_sent(embeddings: Mapping[int, Tensor]) -> dict[int, Message]:
    """The hosts' first messages: their embeddings (t, 128)."""
    plain = frozenset({EMBEDDING})
    return {code: Message({EMBEDDING: embedding[None]}, plain=plain) for code, embedding in embeddings.items()}


class RawHosts(Visited):
    """All owners with missing neighbours; each returns the gradient of the loss by every vector.

    Args:
        home: code of the visiting owner.
        owners: with missing neighbours.
        rounds: number of rounds.
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


class RawVisitor(Visitor):
    """The visiting owner; it generates vectors from the hosts' embeddings.

    Args:
        home: its code.
        embeddings: institution -> (t, 128) of the hosts, in their order.
        draws: of the repeat.
        noise: on the copy of fGen for the others.
        fgen: trained in place.
        learning_rate: Adam's.
        rounds: number of rounds.
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
