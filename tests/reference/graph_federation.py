"""GCFL's network and its federated training as the paper writes them: a graph after the other, dense adjacencies.

No message passing library, no batch: every graph is a matrix. torch's Adam, FedAvg of the shared layers. Slow; both
engines must give the same numbers.
"""

import numpy as np
import torch
from torch.nn.functional import cross_entropy


def matrices(graphs, number):
    """Features (k, d) and adjacency (k, k), receivers in rows, of one graph."""
    start, stop = graphs.node_start[number : number + 2]
    first, last = graphs.edge_start[number : number + 2]
    adjacency = torch.zeros(stop - start, stop - start, dtype=torch.float64)
    for source, target in zip(graphs.source[first:last], graphs.target[first:last], strict=True):
        adjacency[target, source] += 1
    return torch.from_numpy(graphs.nodes[start:stop]).double(), adjacency


def logits_of(weights, x, adjacency, kept=None):
    """(C,) logits of one graph; `kept` are factors, (k, h) for each convolution and then (h,)."""

    def linear(name, values):
        return values @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    hidden = linear("pre", x)
    layers = sum(name.endswith(".nn.0.bias") for name in weights)
    for layer in range(layers):
        summed = hidden + adjacency @ hidden
        hidden = linear(f"convs.{layer}.nn.2", linear(f"convs.{layer}.nn.0", summed).relu()).relu()
        hidden = hidden * kept[layer] if kept else hidden
    hidden = linear("post", hidden.sum(dim=0)).relu()
    return linear("readout", hidden * kept[layers] if kept else hidden)


def train_by_loops(cohort, starts, settings, streams, rate, shared):
    """Train all institutions of all folds.

    Args:
        cohort: graphs and labels.
        starts: (M) initial parameters by name, the same for all folds.
        settings: of the federation; Adam is kept, weights are numbers of training graphs.
        streams: random streams.
        rate: of dropout.
        shared: names of what is averaged; empty: nothing.

    Returns:
        Probabilities (T, M, F, n, C), losses (T, M, F), norms of the shared gradient (T, M, F).
    """
    shape = (settings.rounds, *cohort.labels.shape)
    probabilities, losses, norms = np.zeros((*shape, cohort.classes)), np.full(shape[:3], np.nan), np.zeros(shape[:3])
    for position, fold in enumerate(cohort.folds):
        held = [
            {name: value.detach().double().clone().requires_grad_() for name, value in start.items()}
            for start in starts
        ]
        optimisers = [
            torch.optim.Adam(each.values(), lr=settings.learning_rate, weight_decay=settings.weight_decay)
            for each in held
        ]
        for number in range(settings.rounds):
            for place, weights in enumerate(held):
                graphs, labels = cohort.graphs[place][position], cohort.labels[place, position]
                anchor = {name: weights[name].detach().clone() for name in shared or weights}
                seen = []
                for epoch in range(settings.local_epochs):
                    for step, part in enumerate(steps_of(labels, settings.batch, streams, place, fold, number, epoch)):
                        key = (place, fold, number, epoch, step)
                        loss = loss_of(weights, graphs, labels, part, streams, key, rate)
                        optimisers[place].zero_grad()
                        (loss + settings.proximal / 2 * distance(weights, anchor)).backward()
                        squares = [float(weights[name].grad.square().sum()) for name in shared]
                        norms[number, place, position] = sum(squares) ** 0.5
                        optimisers[place].step()
                        seen.append(float(loss.detach()))
                losses[number, place, position] = np.mean(seen) if seen else np.nan
            average(held, [(cohort.labels[place, position] >= 0).sum() for place in range(len(held))], shared)
            for place, weights in enumerate(held):
                graphs = cohort.graphs[place][position]
                for graph in range(len(graphs.node_start) - 1):
                    with torch.no_grad():
                        found = torch.softmax(logits_of(weights, *matrices(graphs, graph)), dim=0)
                    probabilities[number, place, position, graph] = found.numpy()
    return probabilities, losses, norms


def steps_of(labels, batch, streams, place, fold, number, epoch):
    """Training graphs of each local step, ascending in a step."""
    training = torch.nonzero(labels >= 0)[:, 0].numpy()
    if len(training) <= (batch or len(training)):
        return [training] if len(training) else []
    steps = -(-len(training) // batch)
    order = streams.numpy("batches", place, fold, number, epoch).permutation(training)
    return [np.sort(order[step::steps]) for step in range(steps)]


def loss_of(weights, graphs, labels, part, streams, key, rate):
    """Mean cross-entropy of some graphs with dropout."""
    sizes = np.diff(graphs.node_start)[part]
    width = len(weights["post.bias"])
    layers = sum(name.endswith(".nn.0.bias") for name in weights)
    rows = [sizes.sum()] * layers + [len(part)]
    stream = streams.numpy("dropout", *key).bit_generator
    factors = [factors_of(stream, count, width, rate) for count in rows]
    logits, first = [], 0
    for index, graph in enumerate(part):
        own = [factor[first : first + sizes[index]] for factor in factors[:-1]] + [factors[-1][index]]
        logits.append(logits_of(weights, *matrices(graphs, graph), own))
        first += sizes[index]
    return cross_entropy(torch.stack(logits), labels[part])


def factors_of(stream, rows, width, rate):
    """Dropout's factors: bytes of a keyed stream, of which the upper share 1 - rate is kept."""
    if not rate:
        return torch.ones(rows, width, dtype=torch.float64)
    words = stream.random_raw(-(-rows * width // 8))
    drawn = np.frombuffer(words.tobytes(), dtype=np.int8)[: rows * width].astype(float)
    kept = drawn >= 128 - 256 * (1 - rate)
    return torch.from_numpy(kept.reshape(rows, width) / (1 - rate))


def distance(weights, anchor):
    return sum((weights[name] - value).square().sum() for name, value in anchor.items())


@torch.no_grad()
def average(held, counts, shared):
    """The mean of the shared tensors, weighed by numbers of training graphs, back to everybody."""
    for name in shared:
        mean = sum(count * each[name] for count, each in zip(counts, held, strict=True)) / sum(counts)
        for each in held:
            each[name].copy_(mean)
