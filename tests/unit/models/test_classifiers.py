"""The classifiers are the layers of PyTorch and PyTorch Geometric that the papers' tables name."""

import numpy as np
import pytest
import torch
from torch.nn.functional import elu
from torch_geometric.nn import GCNConv, SAGEConv

from brainfed.models import GCN, MLP, GraphSAGE, LogisticRegression, class_probabilities
from brainfed.runtime import Streams
from reference.fedsage import neighbour_means
from reference.loop_federation import symmetric

RNG = np.random.default_rng(0)
X = torch.from_numpy(RNG.standard_normal((9, 7)))
WEIGHTS = np.triu(RNG.random((9, 9)) * (RNG.random((9, 9)) < 0.4), 1)
ADJACENCY = torch.from_numpy(WEIGHTS + WEIGHTS.T + np.eye(9))
# Sender and receiver, as PyTorch Geometric has them.
EDGES = ADJACENCY.T.nonzero().T
APART = EDGES[:, EDGES[0] != EDGES[1]]
EDGE_WEIGHTS = ADJACENCY.T[EDGES[0], EDGES[1]]


def started(module):
    module = module.double()
    module.start(Streams(3), 1)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name.startswith("bias") or name == "weight_skip":
                parameter.normal_(generator=torch.Generator().manual_seed(len(name)))
    return module


def linear(weight, bias, layer=torch.nn.Linear):
    made = layer(*weight.shape).double()
    with torch.no_grad():
        getattr(made, "lin", made).weight.copy_(weight.T)
        made.bias.copy_(bias)
    return made


def convolution(rows, columns):
    return GCNConv(rows, columns, add_self_loops=False)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("skip", [False, True])
def test_table_iv_is_two_graph_convolutions_and_a_linear_layer(skip, classes):
    ours = started(GCN(7, (5, 4), classes, skip=skip))
    first, second = (linear(ours.weight_0, ours.bias_0, convolution), linear(ours.weight_1, ours.bias_1, convolution))
    hidden = second(elu(first(X, EDGES, EDGE_WEIGHTS)), EDGES, EDGE_WEIGHTS)
    expected = linear(ours.weight_2, ours.bias_2)(hidden)
    expected = expected + X @ ours.weight_skip if skip else expected
    found = ours(X, symmetric(ADJACENCY))
    assert found.shape == (9, classes)
    torch.testing.assert_close(found, expected)


def test_the_mlp_is_table_iv_without_a_graph():
    ours = started(MLP(7, (5, 4), 3))
    first, second, last = (
        linear(ours.get_parameter(f"weight_{layer}"), ours.get_parameter(f"bias_{layer}")) for layer in range(3)
    )
    torch.testing.assert_close(ours(X), last(second(elu(first(X)))))
    torch.testing.assert_close(ours(X), started(GCN(7, (5, 4), 3))(X, torch.eye(9).double()))


def test_logistic_regression_is_one_linear_layer():
    ours = started(LogisticRegression(7, 3))
    torch.testing.assert_close(ours(X), linear(ours.weight_0, ours.bias_0)(X))


def test_graphsage_averages_over_neighbours():
    ours = started(GraphSAGE(7, (5, 4), 3))
    layers = [SAGEConv(7, 5, aggr="mean").double(), SAGEConv(5, 4, aggr="mean").double()]
    with torch.no_grad():
        for number, layer in enumerate(layers):
            layer.lin_l.weight.copy_(ours.get_parameter(f"weight_{number}").T)
            layer.lin_l.bias.copy_(ours.get_parameter(f"bias_{number}"))
            layer.lin_r.weight.copy_(ours.get_parameter(f"weight_own_{number}").T)
    expected = linear(ours.weight_2, ours.bias_2)(layers[1](elu(layers[0](X, APART)), APART))
    torch.testing.assert_close(ours(X, neighbour_means(ADJACENCY)), expected)


def test_weights_start_within_glorots_bound_and_biases_and_the_skip_at_zero():
    module = GCN(7, (5, 4), 2, skip=True)
    module.start(Streams(3), 1)
    assert not any(p.any() for name, p in module.named_parameters() if name.startswith("bias") or "skip" in name)
    assert 0.5 < float(module.weight_0.detach().abs().max()) / (6 / 12) ** 0.5 <= 1
    first = module.weight_0.clone()
    module.start(Streams(3), 2)
    assert not torch.equal(module.weight_0, first)


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_of_all_classes_sum_to_one(classes):
    logits = torch.from_numpy(RNG.standard_normal((4, 6, classes)))
    found = class_probabilities(logits)
    torch.testing.assert_close(found, torch.softmax(logits, dim=-1))
    torch.testing.assert_close(found.sum(dim=-1), torch.ones(4, 6).double())
