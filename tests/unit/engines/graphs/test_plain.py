"""The plain engine on whole graphs: the numbers of loops over graphs, and no sight of a test graph."""

import numpy as np
import pytest
import torch

from brainfed.engines.graphs import GraphCohort
from brainfed.samples import GraphSamples
from reference.graph_cohorts import random_cohort, random_graphs
from reference.graph_federation import train_by_loops

from .training import STREAMS, fast, networks, plain, settings_of, shared, train

OPTIONS = [
    {}, {"batch": 4}, {"proximal": 0.5, "batch": 4}, {"rate": 0.25}, {"rate": 0.0, "directed": True}, {"alone": True},
    {"alone": True, "proximal": 0.5},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_it_gives_the_numbers_of_loops_over_graphs(options):
    options = dict(options)
    rate, alone, directed = (options.pop(name, default) for name, default in
                             (("rate", 0.5), ("alone", False), ("directed", False)))  # fmt: skip
    cohort = random_cohort(directed=directed)
    modules, settings = networks(cohort, rate), settings_of(**options)
    shares = [] if alone else shared(modules)
    starts = [dict(own[0].named_parameters()) for own in modules]
    # The reference starts all folds alike.
    for own in modules:
        own[1].load_state_dict(own[0].state_dict())
    expected = train_by_loops(cohort, starts, settings, STREAMS, rate, shares)
    clients = plain(modules, cohort, settings, shares, sends_gradient_norm=not alone)
    server = train(clients, shares)
    np.testing.assert_allclose(clients.curves.probabilities, expected[0], atol=1e-8, rtol=0)
    np.testing.assert_allclose(clients.curves.losses, expected[1], atol=1e-8, rtol=0)
    if shares:
        np.testing.assert_allclose(np.array(server.norms), expected[2], atol=1e-8, rtol=0)


@pytest.mark.parametrize("one_hot", [True, False])
@pytest.mark.parametrize("engine", [plain, fast])
def test_a_test_graph_influences_no_other_graph(engine, one_hot):
    cohort, settings = random_cohort(folds=(0,), features=2, one_hot=one_hot), settings_of(batch=4)
    changed, scored = with_other_tests(cohort), []
    for held in (cohort, changed):
        modules = networks(held)
        clients = engine(modules, held, settings, shared(modules))
        server = train(clients, shared(modules))
        scored.append((server.tensors, clients.curves))
    (weights, curves), (other_weights, other_curves) = scored
    for name, tensor in weights.items():
        assert tensor.numpy().tobytes() == other_weights[name].numpy().tobytes()
    assert curves.losses.tobytes() == other_curves.losses.tobytes()
    for place, size in enumerate(cohort.subjects):
        trained = (cohort.labels[place, 0, :size] >= 0).numpy()
        left, right = (each.probabilities[:, place, 0, :size] for each in (curves, other_curves))
        np.testing.assert_allclose(left[:, trained], right[:, trained], atol=1e-12, rtol=0)
        assert (left[:, ~trained] != right[:, ~trained]).any(axis=-1).all()


def with_other_tests(cohort):
    """The same training graphs, other test graphs of other sizes."""
    held = []
    for place, own in enumerate(cohort.graphs):
        size = cohort.subjects[place]
        both = joined(own[0], random_graphs(size, 2, seed=99 + place, one_hot=False))
        trained = (cohort.labels[place, 0, :size] >= 0).numpy()
        held.append([both.of(np.where(trained, np.arange(size), size + np.arange(size)))])
    return GraphCohort(held, cohort.labels, cohort.folds, cohort.classes)


def joined(first, second):
    def starts(left, right):
        return np.concatenate([left, left[-1] + right[1:]])

    return GraphSamples(
        starts(first.node_start, second.node_start),
        np.concatenate([first.nodes, second.nodes]),
        starts(first.edge_start, second.edge_start),
        *(np.concatenate([getattr(first, name), getattr(second, name)]) for name in ("source", "target", "weight")),
    )


def test_a_cohort_gives_every_institution_its_own_graphs():
    graphs, rng = random_graphs(12), np.random.default_rng(0)
    labels = rng.integers(-1, 2, (2, 12))
    members = [np.array([1, 4, 7]), np.array([0, 11])]
    cohort = GraphCohort.of([graphs], labels, members, (3, 4), 2)
    assert cohort.subjects == (3, 2)
    assert cohort.graphs[0][0] is cohort.graphs[0][1]
    for place, own in enumerate(members):
        assert torch.equal(cohort.labels[place, :, : len(own)], torch.from_numpy(labels[:, own]))
        for position, number in enumerate(own):
            start = cohort.graphs[place][0].node_start[position : position + 2]
            expected = graphs.nodes[slice(*graphs.node_start[number : number + 2])]
            np.testing.assert_array_equal(cohort.graphs[place][0].nodes[slice(*start)], expected)
    assert (cohort.labels[1, :, 2] == -1).all()
    apart = GraphCohort.of([graphs, random_graphs(12, seed=1)], labels, members, (3, 4), 2)
    assert apart.graphs[0][0] is not apart.graphs[0][1]
