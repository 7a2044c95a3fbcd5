"""Propagation by edges alone gives the numbers and gradients of the dense stack, in every method that propagates."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from brainfed.engines.stacked import _stack as stack
from brainfed.engines.stacked._first_layer import SparsePropagation, institution_blocks, row_sums
from brainfed.graphs import Graph, normalised_adjacency
from brainfed.methods import FederatedClassifierSettings, SoloSettings
from brainfed.methods.fedsage.train import train_sage
from brainfed.methods.gcn.declaration import FedGCNSettings
from brainfed.methods.gcn.train import train_centralgcn, train_fedgcn, train_localgcn
from brainfed.runtime.jobs import Run
from reference.loop_federation import train_by_loops
from support.samples.method_inputs import method_inputs

DOUBLE = Run(precision="float64")
SCHEDULE = {"rounds": 2, "local_epochs": 3, "learning_rate": 0.01}
SOLO = {"epochs": 6, "curve_every": 3, "learning_rate": 0.01}
METHODS = {
    "fedgcn": (train_fedgcn, FedGCNSettings(**SCHEDULE, hidden=(8, 4))),
    "fedgcn-skip": (train_fedgcn, FedGCNSettings(**SCHEDULE, hidden=(8, 4), skip="linear")),
    "localgcn": (train_localgcn, SoloSettings(**SOLO, hidden=(8, 4))),
    "centralgcn": (train_centralgcn, SoloSettings(**SOLO, hidden=(8, 4))),
    "fedsage": (train_sage, FederatedClassifierSettings(**SCHEDULE, hidden=(8, 4))),
}


def random_blocks(rng, institutions, graphs, nodes):
    """Dense (M, G, n, n) matrices with few entries, and the same as edges; the last institution is smaller."""
    dense = rng.standard_normal((institutions, graphs, nodes, nodes)) * (rng.random((1, 1, nodes, nodes)) < 0.3)
    dense[-1, :, nodes // 2 :] = 0
    dense[-1, :, :, nodes // 2 :] = 0
    edges = [[(*np.nonzero(block), block[np.nonzero(block)]) for block in institution] for institution in dense]
    return torch.from_numpy(dense), SparsePropagation.of_edges(edges, nodes, torch.float64)


@given(
    seed=st.integers(0, 10**6), institutions=st.integers(1, 3), nodes=st.integers(1, 9), folds=st.integers(1, 3),
    own=st.booleans(),
)  # fmt: skip
@hypothesis_settings(max_examples=40, deadline=None)
def test_product_and_gradient_are_those_of_the_dense_stack(seed, institutions, nodes, folds, own):
    rng = np.random.default_rng(seed)
    dense, sparse = random_blocks(rng, institutions, folds if own else 1, nodes)
    upstream = torch.from_numpy(rng.standard_normal((institutions, folds, nodes, 2)))
    activations = torch.from_numpy(rng.standard_normal((institutions, folds, nodes, 2)))
    results = []
    for propagation in (dense, sparse):
        activation = activations.clone().requires_grad_()
        product = propagation @ activation
        (product * upstream).sum().backward()
        results.append((product.detach(), activation.grad))
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


def test_blocks_and_row_sums_of_one_institution():
    dense, sparse = random_blocks(np.random.default_rng(1), 3, 2, 6)
    for institution, nodes in ((0, 6), (1, 6), (2, 3)):
        expected = institution_blocks(dense, institution, nodes)
        found = institution_blocks(sparse, institution, nodes)
        for left, right in zip(expected, found, strict=True):
            np.testing.assert_array_equal(right.to_dense(), left)
            np.testing.assert_allclose(row_sums(right), row_sums(left), atol=1e-12)


@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_scores_alike(monkeypatch, name, protocol):
    train, settings = METHODS[name]
    inputs = method_inputs(subjects=50, dimensions=9, institutions=3, folds=3, effect=0.5, seed=7, protocol=protocol)
    dense = train(inputs, settings, DOUBLE)
    monkeypatch.setattr(stack, "DENSE_NUMBERS", 0)
    sparse = train(inputs, settings, DOUBLE)
    np.testing.assert_allclose(sparse.scores[..., 1], dense.scores[..., 1], atol=1e-8, rtol=0)
    np.testing.assert_allclose(sparse.training_loss, dense.training_loss, atol=1e-8, rtol=0)


def test_sparse_training_equals_the_loop(monkeypatch):
    monkeypatch.setattr(stack, "DENSE_NUMBERS", 0)
    inputs = method_inputs(subjects=47, dimensions=7, institutions=3, folds=3, effect=0.5, seed=5)
    outcome = train_fedgcn(inputs, FedGCNSettings(**SCHEDULE, hidden=(8, 4)), DOUBLE)
    expected = train_by_loops(inputs, hidden=(8, 4), graph=True, standardise=True, noise=0.01, **SCHEDULE)
    np.testing.assert_allclose(outcome.scores[..., 1], expected, atol=1e-8, rtol=0, equal_nan=True)


def test_a_large_graph_never_becomes_dense():
    nodes = 40_000
    place = np.arange(nodes)
    ring = Graph(np.repeat(place, 2), np.stack([place, (place + 1) % nodes], 1).ravel(), np.ones(2 * nodes), nodes)
    inputs = method_inputs(subjects=30, dimensions=2, institutions=1, folds=3)
    whole = stack.Member(place, None, None)
    inputs = stack.MethodInputs(**{**vars(inputs), "graphs": (ring,)})
    found = stack.stack_graphs(inputs, (whole,), (0,), normalised_adjacency, torch.float32)
    assert isinstance(found, SparsePropagation)
    np.testing.assert_allclose(found @ torch.ones(1, 1, nodes, 1), 1.0, atol=1e-6)
