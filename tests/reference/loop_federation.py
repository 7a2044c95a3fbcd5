"""Federated, local and central training as the papers write them: loops over folds, institutions, epochs.

Plain torch and PyTorch Geometric, one small model at a time, explicit z-scores. Slow; the stacked
training must give the same weights.
"""

from itertools import pairwise

import numpy as np
import torch
from torch.nn.functional import cross_entropy, elu
from torch_geometric.nn import GCNConv

from brainfed.federation.privacy import normal
from brainfed.models.stacked_network import initial_weight


class Classifier(torch.nn.Module):
    """FedNI Table IV with PyG's layers; a plain MLP without a graph; a linear model without hidden layers."""

    def __init__(self, widths, graph):
        super().__init__()
        self.layers = torch.nn.ModuleList()
        for number, (rows, columns) in enumerate(pairwise(widths)):
            convolution = graph and number < len(widths) - 2
            self.layers.append(
                GCNConv(rows, columns, add_self_loops=False) if convolution else torch.nn.Linear(rows, columns)
            )

    def forward(self, x, edges, weights):
        for number, layer in enumerate(self.layers):
            x = layer(x, edges, weights) if isinstance(layer, GCNConv) else layer(x)
            if number == 0 and len(self.layers) > 1:
                x = elu(x)
        return x

    def matrices(self):
        """name -> (tensor in brainfed's orientation, parameter, transposed?)"""
        named = {}
        for number, layer in enumerate(self.layers):
            linear = layer.lin if isinstance(layer, GCNConv) else layer
            named[f"weight-{number}"] = (linear.weight, True)
            named[f"bias-{number}"] = (layer.bias, False)
        return named

    def values(self):
        return {name: (p.detach().T if t else p.detach()).clone() for name, (p, t) in self.matrices().items()}

    @torch.no_grad()
    def set(self, values):
        for name, (parameter, transposed) in self.matrices().items():
            parameter.copy_(values[name].T if transposed else values[name])


def start(widths, fold, streams):
    values = {}
    for number, (rows, columns) in enumerate(pairwise(widths)):
        values[f"weight-{number}"] = initial_weight(streams, number, fold, rows, columns).double()
        values[f"bias-{number}"] = torch.zeros(columns, dtype=torch.float64)
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
):
    """Scores (F, n) after the last round, float64."""
    groups = (
        [np.arange(len(inputs.subjects))] if pooled else [inputs.members(m) for m in range(len(inputs.institutions))]
    )
    scores = np.full((inputs.folds, len(inputs.subjects)), np.nan)
    widths = (inputs.features[0].shape[1], *hidden, 2)
    for fold in range(inputs.folds):
        x_all = np.asarray(inputs.fold_features(fold), dtype=np.float64)
        clients = []
        for nodes in groups:
            labels = inputs.labels[fold][nodes]
            x = x_all[nodes]
            if standardise:
                if not (labels >= 0).any():
                    raise ValueError("the loop version knows no institution without training subjects")
                mean, sd = x[labels >= 0].mean(axis=0), x[labels >= 0].std(axis=0)
                x = (x - mean) / np.where(sd > 0, sd, 1.0)
            edges, weights = edge_list(inputs, nodes, fold) if graph else (None, None)
            model = Classifier(widths, graph).double()
            model.set(start(widths, fold, inputs.streams))
            clients.append((nodes, torch.from_numpy(x), torch.from_numpy(labels), edges, weights, model))
        optimisers = [
            torch.optim.Adam(c[-1].parameters(), lr=learning_rate, weight_decay=weight_decay) for c in clients
        ]
        longest = max(len(c[0]) for c in clients)
        for number in range(rounds):
            if exchange:
                optimisers = [
                    torch.optim.Adam(c[-1].parameters(), lr=learning_rate, weight_decay=weight_decay) for c in clients
                ]
            for index, ((_, x, y, edges, weights, model), optimiser) in enumerate(
                zip(clients, optimisers, strict=True)
            ):
                for epoch in range(local_epochs):
                    labelled = torch.nonzero(y >= 0)[:, 0]
                    parts = [labelled]
                    if batch:
                        steps = -(-longest // batch)
                        order = inputs.streams.numpy("batches", index, fold, number, epoch).permutation(
                            labelled.numpy()
                        )
                        parts = [torch.from_numpy(order[step::steps]) for step in range(steps)]
                    for part in parts:
                        optimiser.zero_grad()
                        cross_entropy(model(x, edges, weights)[part], y[part]).backward()
                        optimiser.step()
            if exchange:
                uploads, sizes = [], []
                for index, client in enumerate(clients):
                    values = client[-1].values()
                    for name in values:
                        draw = normal(
                            inputs.streams, values[name].shape, "weight-noise", index, fold, number, name
                        ).double()
                        values[name] = values[name] + noise * draw
                    uploads.append(values)
                    sizes.append(1.0 if weighting == "equal" else float((client[2] >= 0).sum()))
                mean = {
                    name: sum(size * upload[name] for size, upload in zip(sizes, uploads, strict=True)) / sum(sizes)
                    for name in uploads[0]
                }
                for client in clients:
                    client[-1].set(mean)
        for nodes, x, _, edges, weights, model in clients:
            with torch.no_grad():
                probability = torch.softmax(model(x, edges, weights), dim=1)[:, 1].numpy()
            tested = inputs.fold[nodes] == fold
            scores[fold, nodes[tested]] = probability[tested]
    return scores


def edge_list(inputs, nodes, fold):
    """Edges among `nodes` as PyG wants them: (source, target), the target receives."""
    graph = inputs.graphs[fold if len(inputs.graphs) > 1 else 0]
    place = np.full(graph.nodes, -1)
    place[nodes] = np.arange(len(nodes))
    inside = (place[graph.row] >= 0) & (place[graph.column] >= 0)
    edges = np.stack([place[graph.column[inside]], place[graph.row[inside]]])
    return torch.from_numpy(edges), torch.from_numpy(graph.weight[inside].astype(np.float64))
