"""Federated, local and central training as the papers write them: loops over folds, institutions, epochs.

Plain torch and PyTorch Geometric, one small model at a time, explicit z-scores. Slow; the stacked
training must give the same weights.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from brainfed.models.stacked_network import initial_weight
from torch.nn.functional import cross_entropy, elu
from torch_geometric.nn import GCNConv

from brainfed.federation.privacy import normal


class Classifier(torch.nn.Module):
    """FedNI Table IV with PyG's layers; a plain MLP without a graph; a linear model without hidden layers.

    `skip` adds a linear classifier of the features to the logits, past the graph.
    """

    def __init__(self, widths, graph, skip=False):
        super().__init__()
        self.skip = torch.nn.Linear(widths[0], widths[-1], bias=False) if skip else None
        self.layers = torch.nn.ModuleList()
        for number, (rows, columns) in enumerate(pairwise(widths)):
            convolution = graph and number < len(widths) - 2
            self.layers.append(
                GCNConv(rows, columns, add_self_loops=False) if convolution else torch.nn.Linear(rows, columns)
            )

    def forward(self, x, edges, weights, factors=None):
        past = 0 if self.skip is None else self.skip(x)
        for number, layer in enumerate(self.layers):
            if factors is not None and number > 0:
                x = x * factors[number - 1]
            x = layer(x, edges, weights) if isinstance(layer, GCNConv) else layer(x)
            if number == 0 and len(self.layers) > 1:
                x = elu(x)
        return x + past

    def matrices(self):
        """name -> (tensor in brainfed's orientation, parameter, transposed?)"""
        named = {}
        for number, layer in enumerate(self.layers):
            linear = layer.lin if isinstance(layer, GCNConv) else layer
            named[f"weight-{number}"] = (linear.weight, True)
            named[f"bias-{number}"] = (layer.bias, False)
        if self.skip is not None:
            named["weight-skip"] = (self.skip.weight, True)
        return named

    def values(self):
        return {name: (p.detach().T if t else p.detach()).clone() for name, (p, t) in self.matrices().items()}

    @torch.no_grad()
    def set(self, values):
        for name, (parameter, transposed) in self.matrices().items():
            parameter.copy_(values[name].T if transposed else values[name])


def start(widths, fold, streams, skip):
    values = {}
    for number, (rows, columns) in enumerate(pairwise(widths)):
        values[f"weight-{number}"] = initial_weight(streams, number, fold, rows, columns).double()
        values[f"bias-{number}"] = torch.zeros(columns, dtype=torch.float64)
    if skip:
        values["weight-skip"] = torch.zeros(widths[0], widths[-1], dtype=torch.float64)
    return values


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
    """Scores (F, n) after the last round, float64."""
    everybody = [np.arange(len(inputs.subjects))]
    groups = everybody if pooled else [inputs.members(m) for m in range(len(inputs.institutions))]
    scores = np.full((inputs.folds, len(inputs.subjects)), np.nan)
    widths = (inputs.features[0].shape[1], *hidden, 2)
    for fold in range(inputs.folds):
        clients = [client_of(inputs, nodes, fold, widths, graph, standardise, skip) for nodes in groups]
        optimisers = [adam(client, learning_rate, weight_decay) for client in clients]
        steps = -(-max(len(nodes) for nodes in groups) // batch) if batch else 1
        for number in range(rounds):
            if exchange:
                optimisers = [adam(client, learning_rate, weight_decay) for client in clients]
            for index, (client, optimiser) in enumerate(zip(clients, optimisers, strict=True)):
                starts = client.model.values()
                for epoch in range(local_epochs):
                    parts = parts_of(inputs, client, batch, steps, index, fold, number, epoch)
                    for step, part in enumerate(parts):
                        key = (index, fold, number * local_epochs + epoch, step)
                        factors = drop(inputs.streams, len(client.nodes), hidden, dropout, key) if dropout else None
                        optimiser.zero_grad()
                        cross_entropy(client.logits(factors)[part], client.labels[part]).backward()
                        pull_back(client.model, starts, proximal)
                        optimiser.step()
            if exchange:
                average_uploads(inputs.streams, clients, noise, weighting, fold, number)
        for client in clients:
            with torch.no_grad():
                probability = torch.softmax(client.logits(), dim=1)[:, 1].numpy()
            tested = inputs.fold[client.nodes] == fold
            scores[fold, client.nodes[tested]] = probability[tested]
    return scores


def pull_back(model, starts, mu):
    """The gradient of FedProx's mu / 2 |w - w_t|^2."""
    for name, (parameter, transposed) in model.matrices().items():
        before = starts[name].T if transposed else starts[name]
        parameter.grad += mu * (parameter.detach() - before)


@dataclass
class Client:
    """One institution in one fold."""

    nodes: np.ndarray
    features: torch.Tensor
    labels: torch.Tensor
    edges: torch.Tensor | None
    weights: torch.Tensor | None
    model: Classifier

    def logits(self, factors=None):
        return self.model(self.features, self.edges, self.weights, factors)


def client_of(inputs, nodes, fold, widths, graph, standardise, skip):
    labels = inputs.labels[fold][nodes]
    x = np.asarray(inputs.fold_features(fold), dtype=np.float64)[nodes]
    if standardise:
        if not (labels >= 0).any():
            raise ValueError("the loop version knows no institution without training subjects")
        mean, sd = x[labels >= 0].mean(axis=0), x[labels >= 0].std(axis=0)
        x = (x - mean) / np.where(sd > 0, sd, 1.0)
    edges, weights = edge_list(inputs, nodes, fold) if graph else (None, None)
    model = Classifier(widths, graph, skip).double()
    model.set(start(widths, fold, inputs.streams, skip))
    return Client(nodes, torch.from_numpy(x), torch.from_numpy(labels), edges, weights, model)


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
        values = client.model.values()
        for name in values:
            draw = normal(streams, values[name].shape, "weight-noise", index, fold, number, name)
            values[name] = values[name] + noise * draw.double()
        uploads.append(values)
        sizes.append(1.0 if weighting == "equal" else float((client.labels >= 0).sum()))
    mean = {
        name: sum(size * upload[name] for size, upload in zip(sizes, uploads, strict=True)) / sum(sizes)
        for name in uploads[0]
    }
    for client in clients:
        client.model.set(mean)


def edge_list(inputs, nodes, fold):
    """Edges among `nodes` as PyG wants them: (source, target), the target receives."""
    graph = inputs.graphs[fold if len(inputs.graphs) > 1 else 0]
    place = np.full(graph.nodes, -1)
    place[nodes] = np.arange(len(nodes))
    inside = (place[graph.row] >= 0) & (place[graph.column] >= 0)
    edges = np.stack([place[graph.column[inside]], place[graph.row[inside]]])
    return torch.from_numpy(edges), torch.from_numpy(graph.weight[inside].astype(np.float64))
