"""GCFL's network: dense algebra a graph, and what leaves an institution."""

import numpy as np
import pytest
import torch

from brainfed.models import GIN, SHARED
from brainfed.runtime import Streams
from reference.graph_cohorts import random_graphs
from reference.graph_federation import logits_of, matrices

STREAMS = Streams(3)


def arguments(graphs):
    sizes = np.diff(graphs.node_start)
    first = np.repeat(graphs.node_start[:-1], np.diff(graphs.edge_start))
    edges = torch.from_numpy(np.stack([graphs.source, graphs.target]) + first)
    graph = torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes))
    return torch.from_numpy(graphs.nodes).double(), edges, graph, len(sizes)


def network(**options):
    module = GIN(4, 3, hidden=8, **options).double()
    module.start(STREAMS, 0, 0)
    return module


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
def test_it_gives_the_logits_of_dense_algebra(layers, directed):
    graphs, module = random_graphs(11, directed=directed), network(layers=layers)
    weights = dict(module.named_parameters())
    inputs = arguments(graphs)
    rows = [len(inputs[0])] * layers + [11]
    kept = [torch.rand(count, 8, dtype=torch.float64) for count in rows]
    expected, scored = [], []
    for number in range(11):
        nodes = slice(*graphs.node_start[number : number + 2])
        own = [*(each[nodes] for each in kept[:-1]), kept[-1][number]]
        expected.append(logits_of(weights, *matrices(graphs, number), own))
        scored.append(logits_of(weights, *matrices(graphs, number)))
    torch.testing.assert_close(module(*inputs, kept), torch.stack(expected))
    torch.testing.assert_close(module.eval()(*inputs), torch.stack(scored))


def test_a_graph_does_not_depend_on_the_order_of_its_nodes_nor_on_its_batch():
    graphs, module = random_graphs(6, seed=1), network().eval()
    nodes, edges, graph, count = arguments(graphs)
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(nodes)))
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    torch.testing.assert_close(
        module(nodes[order], place[edges], graph[order], count), module(nodes, edges, graph, count)
    )
    alone = [module(*arguments(graphs.of(np.array([number])))) for number in range(6)]
    torch.testing.assert_close(torch.cat(alone), module(nodes, edges, graph, count))


def test_the_convolutions_alone_are_shared_and_learn_no_epsilon():
    shared = [name for name, _ in GIN(4, 2).named_parameters() if name.startswith(SHARED)]
    assert len(shared) == 3 * 4
    assert all(".nn." in name for name in shared)
    assert sum(GIN(4, 2).get_parameter(name).numel() for name in shared) == 3 * 2 * (64 * 64 + 64)


def test_the_convolutions_of_a_fold_start_alike_and_all_other_layers_apart():
    state = torch.random.get_rng_state()
    first, second, wide, other = GIN(3, 2), GIN(3, 2), GIN(7, 4), GIN(3, 2)
    torch.random.set_rng_state(state)
    first.start(STREAMS, 0, 0)
    second.start(STREAMS, 0, 1)
    wide.start(STREAMS, 0, 2)
    other.start(STREAMS, 1, 0)
    assert torch.equal(torch.random.get_rng_state(), state)
    for name, weight in first.named_parameters():
        assert torch.equal(weight, second.get_parameter(name)) == name.startswith(SHARED)
        assert not torch.equal(weight, other.get_parameter(name))
        if name.startswith(SHARED):
            assert torch.equal(weight, wide.get_parameter(name))
    bound = 64**-0.5  # of torch's uniform start
    assert 0.9 * bound < float(first.convs[0].nn[0].weight.detach().abs().max()) <= bound


def test_it_drops_activations_in_training_alone():
    inputs, module = arguments(random_graphs(5)), network(dropout=0.5)
    assert not torch.equal(module(*inputs), module(*inputs))
    module.eval()
    assert torch.equal(module(*inputs), module(*inputs))
