"""FedSage+ as its paper writes it: loops over nodes, slots, owners, rounds and folds. Slow, float64.

The vectorised losses, the owner-by-owner training and the stacked GraphSAGE must give the same numbers.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from brainfed.federation import normal
from brainfed.models import GraphSAGE
from reference.loop_federation import adam, average_uploads, client_of


def hidden_neighbours(graph, node, hidden):
    """The hidden nodes that `node` receives from, ascending."""
    edges = zip(graph.row.tolist(), graph.column.tolist(), strict=True)
    return sorted(column for row, column in edges if row == node and column in set(hidden))


def smooth_l1(predicted, true):
    total = 0.0
    for guess, count in zip(predicted, true, strict=True):
        gap = (guess - count).abs()
        total = total + (0.5 * gap**2 if float(gap.detach()) < 1 else gap - 0.5)
    return total / len(true)


def greedy_feature_loss(generated, truths, visible):
    """Every slot of every node against the nearest of its node's true missing neighbours.

    Args:
        generated: one (slots, d) tensor a node.
        truths: one list of (d,) tensors a node, possibly empty.
        visible: number of visible nodes.
    """
    total = torch.zeros((), dtype=torch.float64)
    for slots, candidates in zip(generated, truths, strict=True):
        for vector in slots:
            if candidates:
                errors = torch.stack([(vector - candidate).square().mean() for candidate in candidates])
                total = total + errors.min() / len(slots)
    return total / visible


@dataclass
class PlainOwner:
    """One institution: what it sees, what it hides, and its generator as a dictionary of leaf tensors."""

    code: int
    visible: list
    hidden: list
    features: torch.Tensor
    graph: object
    weights: dict

    def propagation(self):
        block = torch.zeros(len(self.visible), len(self.visible), dtype=torch.float64)
        place = {node: index for index, node in enumerate(self.visible)}
        for row, column, weight in zip(self.graph.row, self.graph.column, self.graph.weight, strict=True):
            if row in place and column in place:
                block[place[row], place[column]] = float(weight)
        return block / block.sum(dim=1, keepdim=True)

    def embeddings(self, keep):
        w, p = self.weights, self.propagation()
        first = torch.relu(p @ self.features[self.visible] @ w["encoder.first.weight"].T + w["encoder.first.bias"])
        second = p @ (first * keep) @ w["encoder.second.weight"].T + w["encoder.second.bias"]
        return torch.relu(second)

    def missing(self, most):
        """One list of true features for each visible node, and how many neighbours it truly misses."""
        lists = [hidden_neighbours(self.graph, node, self.hidden) for node in self.visible]
        return [[self.features[node] for node in found[:most]] for found in lists], [len(found) for found in lists]


def fgen(weights, noisy, keep, slots):
    hidden = torch.relu(noisy @ weights["fgen.first.weight"].T + weights["fgen.first.bias"])
    hidden = torch.relu(hidden @ weights["fgen.second.weight"].T + weights["fgen.second.bias"]) * keep
    flat = torch.tanh(hidden @ weights["fgen.output.weight"].T + weights["fgen.output.bias"])
    return flat.view(len(noisy), slots, -1)


def train_generators_by_loops(inputs, owners, settings, draw_keep):
    """Local epochs of all owners, then rounds of all owners in turn; changes the owners' weights.

    Args:
        inputs: of the inpainting job.
        owners: `PlainOwner`s.
        settings: of the training.
        draw_keep: (rows, width, *key) -> dropout's factors.
    """
    optimisers = {owner.code: torch.optim.Adam(owner.weights.values(), lr=settings.learning_rate) for owner in owners}
    for epoch in range(settings.local_epochs):
        for owner in owners:
            key = (owner.code, "local", epoch)
            z = owner.embeddings(draw_keep(len(owner.visible), 32, "encoder", *key))
            _, counts = owner.missing(settings.targets)
            predicted = torch.relu(z @ owner.weights["dgen.output.weight"][0] + owner.weights["dgen.output.bias"])
            count_loss = smooth_l1(predicted, torch.tensor(counts, dtype=torch.float64))
            loss = count_loss + feature_loss(inputs, owner.weights, z, owner, settings, draw_keep, key)
            optimisers[owner.code].zero_grad()
            loss.backward()
            optimisers[owner.code].step()
    with torch.no_grad():
        frozen = {owner.code: owner.embeddings(1.0) for owner in owners}
    generators = {owner.code: [v for n, v in owner.weights.items() if n.startswith("fgen")] for owner in owners}
    optimisers = {code: torch.optim.Adam(weights, lr=settings.learning_rate) for code, weights in generators.items()}
    for number in range(settings.rounds):
        for owner in owners:
            noisy = with_noise(inputs, owner, settings.noise, number)
            loss = sum(
                feature_loss(
                    inputs,
                    owner.weights if host is owner else noisy,
                    frozen[host.code],
                    host,
                    settings,
                    draw_keep,
                    (owner.code, "federated", number, host.code),
                )
                for host in owners
            )
            optimisers[owner.code].zero_grad()
            loss.backward()
            optimisers[owner.code].step()


def with_noise(inputs, owner, scale, number):
    """fGen's weights as others get them: normal noise on each tensor, through which gradients pass."""
    fold = -1 if inputs.part == "all" else int(inputs.part[5:])
    noisy = {}
    for name, weight in owner.weights.items():
        if name.startswith("fgen."):
            key = ("weight-noise", owner.code, fold, number, name.removeprefix("fgen."))
            noisy[name] = weight + scale * normal(inputs.streams, weight.shape, *key).double()
    return noisy


def feature_loss(inputs, weights, z, host, settings, draw_keep, key):
    """The feature loss of one fGen on the host's embeddings against the host's own missing neighbours."""
    truths, _ = host.missing(settings.targets)
    some = [index for index, truth in enumerate(truths) if truth]
    noise = normal(inputs.streams, (len(some), z.shape[1]), "fedsage-noise", inputs.part, *key).double()
    keep = draw_keep(len(some), settings.fgen_width, "fgen", *key)
    generated = fgen(weights, z[some] + noise, keep, settings.targets)
    return greedy_feature_loss(generated, [truths[index] for index in some], len(host.visible))


def neighbour_means(adjacency):
    """Rows of 1 / number of neighbours, a node itself not among them; 0 where there is none."""
    joined = (adjacency != 0).double().fill_diagonal_(0)
    return joined / joined.sum(dim=1, keepdim=True).clamp(min=1)


def train_sage_by_loops(inputs, *, hidden, rounds, local_epochs, learning_rate, noise):
    """Scores (F, n) after the last round, of federated averaging with equal weights."""
    scores = np.full((inputs.folds, len(inputs.subjects)), np.nan)
    for fold in range(inputs.folds):
        groups = [inputs.members(m) for m in range(len(inputs.institutions))]
        module = GraphSAGE(inputs.features[0].shape[1], hidden, inputs.classes)
        clients = [client_of(inputs, nodes, fold, module, neighbour_means) for nodes in groups]
        for number in range(rounds):
            for client in clients:
                optimiser = adam(client, learning_rate, 0.0)
                labelled = client.labels >= 0
                for _ in range(local_epochs):
                    optimiser.zero_grad()
                    cross_entropy(client.logits()[labelled], client.labels[labelled]).backward()
                    optimiser.step()
            average_uploads(inputs.streams, clients, noise, "equal", fold, number)
        for client in clients:
            with torch.no_grad():
                probability = torch.softmax(client.logits(), dim=1)[:, 1].numpy()
            tested = inputs.fold[client.nodes] == fold
            scores[fold, client.nodes[tested]] = probability[tested]
    return scores
