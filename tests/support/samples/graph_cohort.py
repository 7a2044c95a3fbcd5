"""Small cohorts of whole graphs for the tests of methods: patients' node features are higher."""

from dataclasses import fields, replace

import numpy as np

from brainfed.graphs import ConnectomeSettings, adjacency, matrices, strongest
from brainfed.samples import GraphInputs, GraphSamples, LabelledSubjects
from support.samples.method_inputs import diagnosis_of, method_inputs

FEATURES = 6


def connectome_inputs(held):
    """The same subjects; the features of each are the connections of its regions, of which a third are edges."""
    (features,) = held.features
    regions = round((1 + (1 + 8 * features.shape[1]) ** 0.5) / 2)
    joined = adjacency(strongest(features, regions, ConnectomeSettings(density=1 / 3)), regions)
    graph, source, target = np.nonzero(joined)
    edges = np.concatenate([[0], np.cumsum(np.bincount(graph, minlength=len(features)))])
    nodes = matrices(features, regions).reshape(-1, regions)
    starts, weight = np.arange(len(features) + 1) * regions, np.ones(len(graph), dtype=np.float32)
    shared = {field.name: getattr(held, field.name) for field in fields(LabelledSubjects)}
    return GraphInputs(**shared, graphs=(GraphSamples(starts, nodes, edges, source, target, weight),))


def graph_inputs(subjects=60, effect=0.5, **changes):
    """The subjects, institutions and folds of `method_inputs`, a graph of 5 to 9 nodes each."""
    held = method_inputs(subjects, 4, **changes)
    shared = {field.name: getattr(held, field.name) for field in fields(LabelledSubjects)}
    return GraphInputs(**shared, graphs=(random_graphs(diagnosis_of(held), effect),))


def random_graphs(diagnosis, effect=0.5, seed=0):
    rng = np.random.default_rng([seed, 7])
    sizes = rng.integers(5, 10, len(diagnosis))
    nodes, sources, targets = [], [], []
    for size, patient in zip(sizes, diagnosis, strict=True):
        joined = np.triu(rng.random((size, size)) < 0.4, 1)
        source, target = np.nonzero(joined | joined.T)
        nodes.append(rng.standard_normal((size, FEATURES)) + effect * patient)
        sources.append(source)
        targets.append(target)
    edges = np.cumsum([0, *map(len, sources)])
    return GraphSamples(
        np.cumsum([0, *sizes]),
        np.concatenate(nodes).astype(np.float32),
        edges,
        np.concatenate(sources),
        np.concatenate(targets),
        np.ones(edges[-1], dtype=np.float32),
    )


def with_labels(inputs, diagnosis):
    """The same graphs with other true labels (n,)."""
    tested = np.arange(inputs.folds)[:, None] == inputs.fold
    return replace(inputs, labels=np.where(tested, -1, diagnosis))
