"""The server of GAHFL: its aggregation by a graph network (eq. 6), and its objective (eq. 4 to 7)."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation import Adam, generator_of
from brainfed.federation.distillation._objective import (
    Evaluation,
    Lifetime,
    LogitPool,
    Objective,
    PublicBatch,
    SelfEvaluation,
    Split,
    batch_mean,
    cross_entropy,
    entropy,
    kl,
    right_teachers,
)
from brainfed.runtime import Streams

# GAHFL's aggregation: a graph convolutional network weighs the institutions' models, sample by sample (GAHFL eq. 6).
#
# The nodes of a sample's graph are the institutions' models that predict its label and the global model; their features
# are the logits. Samples have different numbers of such models: all graphs have K + 1 nodes, and the others are masked.

Training = Literal["labels", "l_wd"]
"""What the network learns from: the public labels, or the weighted divergence of GAHFL eq. 7 itself."""
Drop = Literal["none", "bce", "sd", "wd", "teachers"]
"""The term that an ablation of GAHFL's Table IV leaves out; `teachers`: of L_wd the divergence alone."""

HIDDEN = 20
"""Outputs of each layer."""
LEARNING_RATE = 1e-3


def initial_weights(streams: Streams, folds: Sequence[int], classes: int) -> dict[str, Tensor]:
    """(F, ...) Glorot's uniform start of the two layers in folds of these numbers, and their biases, zeros."""
    parameters = {}
    for layer, inputs in enumerate((classes, HIDDEN)):
        bound = (6.0 / (inputs + HIDDEN)) ** 0.5
        weights = []
        for fold in folds:
            generator = generator_of(streams, "gcna-weights", fold, layer, inputs, HIDDEN)
            drawn = torch.empty(inputs, HIDDEN, dtype=torch.float32).uniform_(-bound, bound, generator=generator)
            weights.append(drawn)
        parameters[f"weight_{layer}"] = torch.stack(weights)
        parameters[f"bias_{layer}"] = torch.zeros(len(folds), HIDDEN)
    return parameters


def normalised_adjacency(entropies: Tensor, nodes: Tensor) -> Tensor:
    """(..., N, N) D^-1/2 A D^-1/2 with A_jk = exp(-|h_j - h_k|) among the graph's nodes; zero rows for all others.

    h (..., N) are the entropies of the nodes' predictions; `nodes` (..., N) says whether a node is in the graph. The
    diagonal of A, exp(0) = 1, is the self-loop.
    """
    distance = (entropies[..., :, None] - entropies[..., None, :]).abs()
    adjacency = torch.exp(-distance) * (nodes[..., :, None] & nodes[..., None, :])
    scale = adjacency.sum(dim=-1).clamp(min=1).rsqrt()
    return scale[..., :, None] * adjacency * scale[..., None, :]


class GCNA:
    """A two-layer network a fold with its own Adam, on the device and in the format of its weights `start` (F, ...)."""

    def __init__(self, start: Mapping[str, Tensor], training: Training = "labels") -> None:
        self.training = training
        self.parameters = {name: tensor.detach().clone().requires_grad_() for name, tensor in start.items()}
        folds = len(start["weight_0"])
        self._rows = [[tensor.detach()[fold] for tensor in self.parameters.values()] for fold in range(folds)]
        self._adam = Adam([row for rows in self._rows for row in rows], LEARNING_RATE)

    def weights(self, logits: Tensor, teachers: Tensor, right: Tensor) -> Tensor:
        """(K, F, B) weights of the right models, which sum to 1; zeros for a sample where none is right.

        Row of the global model in A' = Z' Z'^T, softmax over the right models. The gradient reaches the network alone.
        Logits are (F, B, C), teachers' (K, F, B, C), and the `right` (K, F, B) models are nodes of the sample's graph.
        """
        features = torch.cat([logits.detach()[None], teachers.detach()]).permute(1, 2, 0, 3)
        nodes = torch.cat([torch.ones_like(right[:1]), right]).permute(1, 2, 0)
        adjacency = normalised_adjacency(entropy(features), nodes)
        hidden = torch.relu(self._layer(adjacency, features, 0))
        embedding = self._layer(adjacency, hidden, 1)
        scores = (embedding[..., 1:, :] @ embedding[..., 0, :, None])[..., 0]
        masked = scores.masked_fill(~nodes[..., 1:], torch.finfo(scores.dtype).min)
        return (torch.softmax(masked, dim=-1) * nodes[..., 1:]).permute(2, 0, 1)

    def learn(self, weights: Tensor, batch: PublicBatch, divergence: Tensor, right: Tensor) -> None:
        """Take one step of Adam in every fold that has a sample with a right model; the others keep their state.

        Under `labels` the loss of a sample is the cross-entropy of sum_k A'_k softmax(lg_k) on its label; under `l_wd`
        it is sum_k A'_k KL(lg_k || lg), the divergences (K, F, B). Weights and `right` are those of `weights`.
        """
        helped = right.any(dim=0)
        if self.training == "labels":
            labels = batch.labels[None, ..., None].expand(len(weights), -1, -1, 1)
            probability = torch.softmax(batch.teachers, dim=-1).gather(-1, labels)[..., 0]
            values = -torch.where(helped, (weights * probability).sum(dim=0), 1.0).log()
        else:
            values = (weights * divergence.detach()).sum(dim=0)
        moves = helped.any(dim=1).tolist()
        if not any(moves):
            return
        loss = batch_mean(values * helped, batch.weight).sum()
        gradients = torch.autograd.grad(loss, list(self.parameters.values()))
        for fold, rows in enumerate(self._rows):
            for row, gradient in zip(rows, gradients, strict=True):
                row.grad = gradient[fold] if moves[fold] else None
        self._adam.step()

    def state(self) -> dict[str, NDArray[Any]]:
        """Weights and the moments of Adam."""
        weights = {name: tensor.detach().cpu().numpy() for name, tensor in self.parameters.items()}
        return weights | {f"adam/{name}": array for name, array in self._adam.arrays().items()}

    @torch.no_grad()
    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a `state`."""
        for name, tensor in self.parameters.items():
            tensor.copy_(torch.from_numpy(arrays[name]))
        self._adam.load(
            {name.removeprefix("adam/"): array for name, array in arrays.items() if name.startswith("adam/")}
        )

    def _layer(self, adjacency: Tensor, features: Tensor, layer: int) -> Tensor:
        weight, bias = self.parameters[f"weight_{layer}"], self.parameters[f"bias_{layer}"]
        return adjacency @ features @ weight[:, None] + bias[:, None, None]


# The server's objective of GAHFL (eq. 4 to 7).


class GAHFLObjective(Objective):
    """L_bce + beta L_sd + gamma L_wd (eq. 4).

    - right now: cross-entropy; the logits enter the pool, a running mean with momentum phi.
    - right before: epsilon cross-entropy + (1 - epsilon) KL(E || lg) with the pool's logits E (eq. 5).
    - never right: xi cross-entropy + (1 - xi) sum_k A'_k KL(lg_k || lg) (eq. 7); without a right model of an
      institution, xi cross-entropy.

    Without `bce`, samples that are right now are not trained on, and enter the pool. Without `sd`, samples that were
    right before count as never right. Without `wd`, samples that were never right contribute nothing; without
    `teachers`, xi cross-entropy.

    Args:
        rows: number of public samples P of the fold that has most.
        start: `initial_weights` of the network, whose device and dtype the pool has.
    """

    def __init__(
        self,
        rows: int,
        classes: int,
        start: Mapping[str, Tensor],
        *,
        beta: float = 1.0,
        gamma: float = 10.0,
        epsilon: float = 0.5,
        xi: float = 0.4,
        momentum: float = 0.8,
        drop: Drop = "none",
        gcna_training: Training = "labels",
        self_evaluation: Evaluation = "step",
        lifetime: Lifetime = "training",
    ) -> None:
        self.beta, self.gamma, self.epsilon, self.xi, self.drop = beta, gamma, epsilon, xi, drop
        first = start["weight_0"]
        self.pool = LogitPool(len(first), rows, classes, momentum, first.device, first.dtype)
        self.evaluation = SelfEvaluation(self.pool, self_evaluation, lifetime)
        super().__init__(self.evaluation)
        self.gcna = GCNA(start, gcna_training)

    def loss(self, batch: PublicBatch) -> Tensor:
        """(F,) the total loss; updates the pool and the network."""
        parts = self.evaluation.split(batch)
        if self.drop == "sd":
            parts = Split(parts.right, torch.zeros_like(parts.forgotten), parts.forgotten | parts.never)
        labelled = cross_entropy(batch.logits, batch.labels)
        values = torch.zeros_like(labelled)
        if self.drop != "bce":
            values = values + parts.right * labelled
        if self.drop != "sd":
            recalled = self.epsilon * labelled + (1 - self.epsilon) * kl(self.pool.logits(batch.rows), batch.logits)
            values = values + self.beta * parts.forgotten * recalled
        right = right_teachers(batch) & parts.never & (self.drop not in ("wd", "teachers"))
        if self.drop != "wd":
            taught = self.xi * labelled
            if self.drop != "teachers":
                divergence = kl(batch.teachers, batch.logits)
                weights = self.gcna.weights(batch.logits, batch.teachers, right)
                self.gcna.learn(weights, batch, divergence, right)
                taught = taught + (1 - self.xi) * (weights.detach() * divergence).sum(dim=0)
            values = values + self.gamma * parts.never * taught
        self.evaluation.remember(batch, parts)
        self.visits.count(right.any(dim=0), batch.weight)
        return batch_mean(values, batch.weight)

    def state(self) -> dict[str, NDArray[Any]]:
        """The pool and the network."""
        parts = {"pool": self.pool.state(), "gcna": self.gcna.state()}
        return {f"{part}/{name}": array for part, arrays in parts.items() for name, array in arrays.items()}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a `state`."""
        for name, part in (("pool/", self.pool), ("gcna/", self.gcna)):
            part.load({key.removeprefix(name): array for key, array in arrays.items() if key.startswith(name)})
