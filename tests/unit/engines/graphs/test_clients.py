"""The fast engine: the plain engine's numbers, its messages, a resumed run's bytes, any number of threads."""

import numpy as np
import pytest
import torch

from brainfed.engines.graphs import GraphCohort
from brainfed.engines.graphs import _batch as batch
from brainfed.federation import GRADIENT_NORM
from brainfed.runtime.jobs import Run
from reference.graph_cohorts import random_cohort, random_graphs

from .training import ROUNDS, fast, networks, plain, settings_of, shared, train

CASES = {
    "default": {},
    "several mini-batches": {"batch": 4},
    "proximal": {"proximal": 0.5, "batch": 4},
    "moments set to zero": {"optimiser_state": "reset"},
    "no dropout": {"rate": 0.0},
    "dropout of 16 bits": {"rate": 0.3},
    "continuous features": {"one_hot": False},
    "directed edges": {"directed": True, "batch": 4},
    "one convolution": {"layers": 1},
    "alone": {"alone": True, "proximal": 0.5},
    "three classes": {"classes": 3},
    "blocks of a few nodes": {"nodes": 12},
}


@pytest.mark.parametrize("case", CASES)
def test_it_gives_the_plain_engines_numbers(case, monkeypatch):
    options = dict(CASES[case])
    monkeypatch.setattr(batch, "NODES", options.pop("nodes", batch.NODES))
    about = {name: options.pop(name) for name in ("one_hot", "directed", "classes") if name in options}
    made = {name: options.pop(name) for name in ("rate", "layers") if name in options}
    alone = options.pop("alone", False)
    cohort = random_cohort(sizes=(9, 21, 5, 1), features=2, **about)
    # In fold 0 nobody trains at the last institution, in fold 1 at the first.
    cohort.labels[3, 0] = cohort.labels[0, 1] = -1
    modules, settings = networks(cohort, **made), settings_of(**options)
    shares = [] if alone else shared(modules)
    slow, found = (engine(modules, cohort, settings, shares, sends_gradient_norm=not alone) for engine in (plain, fast))
    expected, server = train(slow, shares), train(found, shares)
    np.testing.assert_allclose(found.curves.losses, slow.curves.losses, atol=1e-8, rtol=0)
    same_scores(found, slow)
    assert np.isnan(found.curves.losses[:, 0, 1]).all()
    for place, own in enumerate(slow.modules):
        for position, module in enumerate(own):
            for name, parameter in module.named_parameters():
                value = found.weights[place].named[position][name]
                torch.testing.assert_close(value, parameter.detach(), atol=1e-8, rtol=0)
    if shares:
        np.testing.assert_allclose(np.array(server.norms), np.array(expected.norms), atol=1e-8, rtol=0)
        assert (np.array(server.norms)[:, 0, 1] == 0).all()
        assert (np.array(server.norms)[:, 1] > 0).all()


def same_scores(found, expected):
    """The fast engine scores what is hidden in training, the plain one all graphs."""
    scores = found.curves.probabilities
    trained = found.cohort.labels.numpy() >= 0
    assert np.isnan(scores[:, trained]).all()
    np.testing.assert_allclose(scores[:, ~trained], expected.curves.probabilities[:, ~trained], atol=1e-8, rtol=0)


def test_another_institutions_network_scores_what_trains_nothing():
    cohort = random_cohort()
    cohort.labels[2, 1] = -1
    modules, settings = networks(cohort), settings_of()
    slow, found = (engine(modules, cohort, settings, []) for engine in (plain, fast))
    for clients in (slow, found):
        train(clients, [])
    with torch.no_grad():
        expected = torch.softmax(slow.modules[0][1](*slow.cohort.arguments[2][1]), dim=1)
    np.testing.assert_allclose(
        found.foreign_probabilities(0, 2, 1, np.arange(len(expected))), expected.numpy(), atol=1e-8, rtol=0
    )


def test_float32_stays_near_float64():
    cohort = random_cohort()
    found = []
    for dtype in (torch.float32, torch.float64):
        modules = networks(cohort, dtype=dtype)
        found.append(fast(modules, cohort, settings_of(), shared(modules)))
        train(found[-1], shared(modules))
    assert found[0].weights[0].values[0].dtype == torch.float32
    np.testing.assert_allclose(found[0].curves.probabilities, found[1].curves.probabilities, atol=1e-4, rtol=0)


def test_institutions_may_have_features_and_classes_of_their_own():
    graphs = [[random_graphs(9, 3, 0)], [random_graphs(7, 5, 1)]]
    labels = torch.full((2, 1, 9), -1)
    labels[0, 0], labels[1, 0, :7] = torch.arange(9) % 2, torch.arange(7) % 3
    cohort = GraphCohort(graphs, labels, (0,), 3)
    modules, settings = networks(cohort), settings_of()
    slow, found = (engine(modules, cohort, settings, shared(modules)) for engine in (plain, fast))
    for clients in (slow, found):
        train(clients, shared(modules))
    same_scores(found, slow)
    first, second = (found.weights[place].stacks for place in (0, 1))
    assert first["pre.weight"].shape != second["pre.weight"].shape
    assert torch.equal(first["convs.2.nn.2.bias"], second["convs.2.nn.2.bias"])
    assert not torch.equal(first["post.bias"], second["post.bias"])


def test_the_convolutions_alone_leave_and_the_norm_only_if_asked_for():
    cohort = random_cohort()
    modules = networks(cohort)
    for engine in (plain, fast):
        for asked in (False, True):
            clients = engine(modules, cohort, settings_of(), shared(modules), sends_gradient_norm=asked)
            reply = clients.fit(0, (0, 2))[2]
            assert set(reply.tensors) == {*shared(modules), *([GRADIENT_NORM] if asked else [])}
            assert reply.plain == ({GRADIENT_NORM} if asked else set())
            assert all(len(tensor) == len(cohort.folds) for tensor in reply.tensors.values())
            assert reply.samples.tolist() == (cohort.labels[2] >= 0).sum(dim=1).tolist()


def test_an_unknown_name_is_refused():
    cohort = random_cohort()
    with pytest.raises(ValueError, match=r"shares: expected names among pre.weight, .* found convs.0.eps"):
        fast(networks(cohort), cohort, settings_of(), ["convs.0.eps"])


@pytest.mark.parametrize("optimiser_state", ["keep", "reset"])
def test_an_interrupted_training_resumes_to_the_same_bytes(optimiser_state, resumed):
    cohort = random_cohort()
    modules, settings = networks(cohort, dtype=torch.float32), settings_of(batch=4, optimiser_state=optimiser_state)

    def trained(run):
        clients = fast(modules, cohort, settings, shared(modules))
        train(clients, shared(modules), run.checkpoint, run.progress)
        return clients

    expected = trained(Run())
    again, seen = resumed(trained, 2)
    assert seen == [2, 3]
    left, right = (each.state(ROUNDS - 1) for each in (again, expected))
    assert {name: array.tobytes() for name, array in left.items()} == {
        name: array.tobytes() for name, array in right.items()
    }


def test_threads_change_no_byte():
    cohort, known = random_cohort(sizes=(30, 20, 40)), torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            modules = networks(cohort, dtype=torch.float32)
            clients = fast(modules, cohort, settings_of(batch=8), shared(modules))
            train(clients, shared(modules))
            assert torch.get_num_threads() == threads
            found.append({name: array.tobytes() for name, array in clients.state(ROUNDS - 1).items()})
    finally:
        torch.set_num_threads(known)
    assert found[0] == found[1] == found[2]
