"""Federated, local and central training as the papers write them: loops over folds, institutions, epochs.

The plain modules of `brainfed.models` and torch's optimisers, one small model at a time, explicit z-scores, a dense
adjacency. Slow; the stacked training must give the same weights.
"""

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from brainfed.federation import normal
from brainfed.models import GCN, MLP, LogisticRegression


def module_of(features, hidden, classes, graph, skip):
    """The plain network of `brainfed.models` that has these layers."""
    if not hidden:
        return LogisticRegression(features, classes)
    return GCN(features, hidden, classes, skip=skip) if graph else MLP(features, hidden, classes)


def train_by_loops(
    inputs,
    *,
    hidden,
    graph,
    standardise,
    rounds,
    local_epochs,
    learning_rate=1e-3,
    noise=0.0,
    exchange=True,
    pooled=False,
    weight_decay=0.0,
    weighting="equal",
    batch=0,
    skip=False,
    dropout=0.0,
    proximal=0.0,
):
    """Scores (F, n) of the last class after the last round, float64."""
    everybody = [np.arange(len(inputs.subjects))]
    groups = everybody if pooled else [inputs.members(m) for m in range(len(inputs.institutions))]
    scores = np.full((inputs.folds, len(inputs.subjects)), np.nan)
    propagate = symmetric if graph else None
    for fold in range(inputs.folds):
        module = module_of(inputs.features[0].shape[1], hidden, inputs.classes, graph, skip)
        clients = [client_of(inputs, nodes, fold, module, propagate, standardise) for nodes in groups]
        optimisers = [adam(client, learning_rate, weight_decay) for client in clients]
        steps = -(-max(len(nodes) for nodes in groups) // batch) if batch else 1
        for number in range(rounds):
            if exchange:
                optimisers = [adam(client, learning_rate, weight_decay) for client in clients]
            for index, (client, optimiser) in enumerate(zip(clients, optimisers, strict=True)):
                starts = values(client.model)
                for epoch in range(local_epochs):
                    parts = parts_of(inputs, client, batch, steps, index, fold, number, epoch)
                    for step, part in enumerate(parts):
                        key = (index, fold, number * local_epochs + epoch, step)
                        factors = drop(inputs.streams, len(client.nodes), hidden, dropout, key) if dropout else ()
                        optimiser.zero_grad()
                        cross_entropy(client.logits(factors)[part], client.labels[part]).backward()
                        pull_back(client.model, starts, proximal)
                        optimiser.step()
            if exchange:
                average_uploads(inputs.streams, clients, noise, weighting, fold, number)
        for client in clients:
            with torch.no_grad():
                probability = torch.softmax(client.logits(), dim=1)[:, -1].numpy()
            tested = inputs.fold[client.nodes] == fold
            scores[fold, client.nodes[tested]] = probability[tested]
    return scores


def pull_back(model, starts, mu):
    """The gradient of FedProx's mu / 2 |w - w_t|^2."""
    for name, parameter in model.named_parameters():
        parameter.grad += mu * (parameter.detach() - starts[name])


def values(model):
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


@dataclass
class Client:
    """One institution in one fold."""

    nodes: np.ndarray
    features: torch.Tensor
    labels: torch.Tensor
    propagation: torch.Tensor | None
    model: torch.nn.Module

    def logits(self, factors=()):
        return self.model(self.features, self.propagation, factors)


def client_of(inputs, nodes, fold, module, propagate=None, standardise=True):
    labels = inputs.labels[fold][nodes]
    x = np.asarray(inputs.fold_features(fold), dtype=np.float64)[nodes]
    if standardise:
        if not (labels >= 0).any():
            raise ValueError("the loop version knows no institution without training subjects")
        mean, sd = x[labels >= 0].mean(axis=0), x[labels >= 0].std(axis=0)
        x = (x - mean) / np.where(sd > 0, sd, 1.0)
    propagation = propagate(adjacency(inputs, nodes, fold)) if propagate else None
    model = deepcopy(module).double()
    model.start(inputs.streams, fold)
    return Client(nodes, torch.from_numpy(x), torch.from_numpy(labels), propagation, model)


def drop(streams, nodes, hidden, rate, key):
    """Factors (n, width) of what enters every layer but the first."""
    factors = []
    for layer, width in enumerate(hidden):
        random = torch.Generator().manual_seed(streams.key("dropout", *key, layer))
        kept = torch.rand(nodes, width, generator=random) >= rate
        factors.append(kept.double() / (1 - rate))
    return factors


def adam(client, learning_rate, weight_decay):
    return torch.optim.Adam(client.model.parameters(), lr=learning_rate, weight_decay=weight_decay)


def parts_of(inputs, client, batch, steps, index, fold, number, epoch):
    """The labelled nodes of each local step."""
    labelled = torch.nonzero(client.labels >= 0)[:, 0]
    if not batch:
        return [labelled]
    order = inputs.streams.numpy("batches", index, fold, number, epoch).permutation(labelled.numpy())
    return [torch.from_numpy(order[step::steps]) for step in range(steps)]


def average_uploads(streams, clients, noise, weighting, fold, number):
    """Noise on every client's weights, their mean back to every client."""
    uploads, sizes = [], []
    for index, client in enumerate(clients):
        upload = values(client.model)
        for name in upload:
            draw = normal(streams, upload[name].shape, "weight-noise", index, fold, number, name.replace("_", "-"))
            upload[name] = upload[name] + noise * draw.double()
        uploads.append(upload)
        sizes.append(1.0 if weighting == "equal" else float((client.labels >= 0).sum()))
    mean = {
        name: sum(size * upload[name] for size, upload in zip(sizes, uploads, strict=True)) / sum(sizes)
        for name in uploads[0]
    }
    for client in clients:
        client.model.load_state_dict(mean)


def adjacency(inputs, nodes, fold):
    """A (n, n) among `nodes`, receivers in rows."""
    graph = inputs.graphs[fold if len(inputs.graphs) > 1 else 0]
    dense = torch.zeros(graph.nodes, graph.nodes, dtype=torch.float64)
    for row, column, weight in zip(graph.row, graph.column, graph.weight, strict=True):
        dense[row, column] = float(weight)
    return dense[nodes][:, nodes]


def symmetric(adjacency):
    """D^-1/2 A D^-1/2 with D the row sums; 0 where there is none."""
    scale = adjacency.sum(dim=1).rsqrt()
    scale[torch.isinf(scale)] = 0
    return scale[:, None] * adjacency * scale
