"""GCFL on made-up institutions, which come apart by their rules, and graphs at the edge of what a network reads."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from brainfed.engines.graphs import GraphClients, GraphCohort
from brainfed.federation import FederationSettings
from brainfed.models import GIN
from brainfed.runtime import Streams, UserError
from brainfed.samples import GraphSamples, check
from reference.module_clients import ModuleClients
from reference.plain_graphs import plain_cohort
from support.samples.graph_cohort import FEATURES, graph_inputs, with_labels
from support.samples.kinds_of_graphs import ALIKE, DENSE, EVEN, TWO_KINDS, kinds_of_graphs, unmixed
from support.samples.method_inputs import diagnosis_of

from .test_gin import outcome_of

ROUNDS, EPS1, EPS2 = 49, 0.049, 0.06
"""By the table of `benchmarks/client_kinds.py` the norm of the mean update falls below `EPS1` in round 40 with two
rules, and in round 58 with one."""


def clusters_of(rules):
    """(T, M) clusters of the first fold."""
    inputs, _ = kinds_of_graphs(rules)
    first = replace(inputs, labels=inputs.labels[:1])
    options = {"rounds": ROUNDS, "learning_rate": 1e-3, "eps1": EPS1, "eps2": EPS2, "clustering": "balanced"}
    return outcome_of("gcfl", first, **options).clusters[:, 0]


def test_institutions_of_two_rules_come_apart_by_their_rules():
    clusters = clusters_of(TWO_KINDS)
    assert not clusters[:30].any()
    assert clusters[-1].any()
    assert unmixed(clusters[-1], TWO_KINDS)


@pytest.mark.full("The other side of the test above, in as many rounds.")
def test_institutions_of_one_rule_stay_together():
    assert not clusters_of(EVEN).any()


def test_graphs_follow_the_rule_of_their_institution():
    inputs, truth = kinds_of_graphs((DENSE, ALIKE), graphs=20)
    graphs = inputs.graphs[0]
    sizes, edges = np.diff(graphs.node_start), np.diff(graphs.edge_start)
    density = edges / (sizes * (sizes - 1))
    first, second = inputs.institution == 0, inputs.institution == 1
    assert density[first & (truth == 1)].min() > density[first & (truth == 0)].max()
    assert np.mean(density[second & (truth == 1)]) == pytest.approx(np.mean(density[second & (truth == 0)]), abs=0.03)
    place = graphs.node_start[np.repeat(np.arange(len(graphs)), edges)]
    alike = graphs.nodes[place + graphs.source].argmax(axis=1) == graphs.nodes[place + graphs.target].argmax(axis=1)
    share = np.add.reduceat(alike, graphs.edge_start[:-1]) / edges
    assert share[second & (truth == 1)].min() > share[second & (truth == 0)].max()


FIRST = 7
"""The subject whose graph is changed."""


def without_edges(inputs):
    graphs = inputs.graphs[0]
    none = np.zeros(0, dtype=np.int64)
    return replace(graphs, edge_start=0 * graphs.edge_start, source=none, target=none, weight=graphs.weight[:0])


def of_one_node(inputs):
    held, none = inputs.graphs[0], np.zeros(0, dtype=np.int64)
    count = len(held)
    nodes = held.nodes[held.node_start[:-1]]
    return GraphSamples(np.arange(count + 1), nodes, np.zeros(count + 1, np.int64), none, none, held.weight[:0])


def one_of(changed):
    """The same graphs, that of one subject changed as `changed` says."""

    def made(inputs):
        held, other = inputs.graphs[0], changed(inputs)
        parts = [(other if number == FIRST else held).of(np.array([number])) for number in range(len(held))]
        names = ("nodes", "source", "target", "weight")
        rows = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        starts = (np.cumsum([0, *(len(getattr(part, name)) for part in parts)]) for name in ("nodes", "source"))
        return GraphSamples(next(starts), rows["nodes"], next(starts), rows["source"], rows["target"], rows["weight"])

    return made


ALLOWED = {
    "no edges": without_edges,
    "one node": of_one_node,
    "no edges in one graph": one_of(without_edges),
    "one node in one graph": one_of(of_one_node),
}


@pytest.mark.parametrize("name", ["selftrain", "central-gin", "fedavg-gin", "gcfl", "gcfl-plus"])
@pytest.mark.parametrize("case", ALLOWED)
def test_graphs_without_edges_or_of_one_node_are_trained_and_scored(case, name):
    plain = graph_inputs(30, folds=2)
    inputs = replace(plain, graphs=(ALLOWED[case](plain),))
    outcome = outcome_of(name, inputs, steps=2)
    check(inputs, outcome)
    tested = inputs.fold[FIRST]
    assert np.isfinite(outcome.scores[tested, FIRST]).all()
    assert (outcome.scores[tested, FIRST] != scores_of_plain_graphs(name)[tested, FIRST]).any()


@cache
def scores_of_plain_graphs(name):
    return outcome_of(name, graph_inputs(30, folds=2), steps=2).scores


@pytest.mark.parametrize("case", [*ALLOWED, "a class missing"])
def test_both_engines_give_them_the_same_scores(case):
    plain = graph_inputs(30)
    if case == "a class missing":
        inputs = with_labels(plain, np.where(plain.institution == 0, 0, diagnosis_of(plain)))
    else:
        inputs = replace(plain, graphs=(ALLOWED[case](plain),))
    members = [inputs.members(place) for place in range(len(inputs.institutions))]
    cohort = GraphCohort.of(inputs.graphs, inputs.labels[:1], members, (0,), 2)
    modules = [[GIN(FEATURES, 2, hidden=8)] for _ in members]
    for place, (module,) in enumerate(modules):
        module.start(Streams(0), 0, place)
        module.double()
    settings = FederationSettings(rounds=3, learning_rate=0.01, noise=0.0)
    fast = GraphClients(modules, cohort, settings, Streams(0))
    slow = ModuleClients(modules, plain_cohort(cohort, modules, Streams(0)), settings, Streams(0))
    for clients in (fast, slow):
        for number in range(settings.rounds):
            clients.fit(number, clients.institutions)
            clients.score(number)
    scored = cohort.labels.numpy() < 0
    found, expected = (each.curves.probabilities[:, scored] for each in (fast, slow))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, atol=1e-8, rtol=0)
    np.testing.assert_allclose(fast.curves.losses, slow.curves.losses, atol=1e-8, rtol=0)


def changed(name, value, inputs):
    """An array of the graphs with a wrong number in the changed subject's part."""
    held = inputs.graphs[0]
    start = held.node_start if name == "nodes" else held.edge_start
    array = getattr(held, name).copy()
    array[start[FIRST]] = value
    return replace(held, **{name: array})


def without_a_node(inputs):
    held = inputs.graphs[0]
    start = held.node_start.copy()
    start[FIRST + 1] = start[FIRST]
    return replace(held, node_start=start)


REFUSED = {
    "NaN in a node": (lambda inputs: changed("nodes", np.nan, inputs), "has a node feature that is not finite"),
    "NaN in a weight": (lambda inputs: changed("weight", np.nan, inputs), "has a weight that is not finite"),
    "an edge out of its graph": (lambda inputs: changed("target", 99, inputs), "has an edge to a node outside of it"),
    "no node": (without_a_node, "has no node"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_graphs_that_no_network_reads_are_one_sentence(case):
    inputs, (make, found) = graph_inputs(30), REFUSED[case]
    assert inputs.graphs[0].edge_start[FIRST + 1] > inputs.graphs[0].edge_start[FIRST]
    with pytest.raises(UserError) as raised:
        replace(inputs, graphs=(make(inputs),))
    assert str(raised.value) == f"graphs: the graph of subject 'sub-0007' {found}; mend this graph."


def test_arrays_that_do_not_fit_and_labels_that_are_no_class_are_one_sentence():
    inputs = graph_inputs(30)
    short = replace(inputs.graphs[0], weight=inputs.graphs[0].weight[1:])
    with pytest.raises(UserError, match=r"graphs: expected graphs of 30 subjects, found \d+ rows of weight, not \d+;"):
        replace(inputs, graphs=(short,))
    with pytest.raises(UserError, match=r"labels of fold 0: expected 0 to 1, .* found 2 of .* number the classes from"):
        with_labels(inputs, diagnosis_of(inputs) + 1)
    apart = replace(inputs, graphs=inputs.graphs * inputs.folds)
    broken = (*inputs.graphs * (inputs.folds - 1), changed("nodes", np.inf, inputs))
    with pytest.raises(UserError, match=f"graphs of fold {inputs.folds - 1}: the graph of subject 'sub-0007'"):
        replace(apart, graphs=broken)
