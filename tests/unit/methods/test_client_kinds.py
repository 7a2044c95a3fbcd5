"""GCFL on made-up institutions: those of two rules come apart, those of one rule stay together.

By the table of `benchmarks/client_kinds.py` the norm of the mean update falls below `EPS1` in round 40 with two rules,
and in round 58 with one.
"""

from dataclasses import replace

import numpy as np
import pytest

from support.samples.kinds_of_graphs import ALIKE, DENSE, EVEN, TWO_KINDS, kinds_of_graphs, unmixed

from .test_gin import outcome_of

ROUNDS, EPS1, EPS2 = 49, 0.049, 0.06


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
