"""Small random graphs for the tests of engines that train on whole graphs."""

import numpy as np
import torch

from brainfed.engines.graphs import GraphCohort
from brainfed.samples import GraphSamples


def random_graphs(count, features=4, seed=0, *, one_hot=True, directed=False):
    """`count` graphs of 1 to 12 nodes, some of them without edges."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 13, count)
    nodes = rng.standard_normal((sizes.sum(), features))
    if one_hot:
        nodes = np.eye(features)[nodes.argmax(axis=1)]
    edges = []
    for size in sizes:
        present = rng.random((size, size)) < rng.choice([0.0, 0.2, 0.5])
        np.fill_diagonal(present, False)
        edges.append(np.argwhere(present if directed else present | present.T))
    pairs = np.concatenate(edges)
    return GraphSamples(
        node_start=np.concatenate([[0], np.cumsum(sizes)]),
        nodes=nodes.astype(np.float32),
        edge_start=np.concatenate([[0], np.cumsum([len(each) for each in edges])]),
        source=pairs[:, 0],
        target=pairs[:, 1],
        weight=np.ones(len(pairs), dtype=np.float32),
    )


def random_cohort(sizes=(9, 14, 5), folds=(0, 1), classes=2, seed=0, features=4, **options):
    """Institutions of `sizes`; fold f tests every graph whose number leaves f + 1 when divided by 4."""
    rng = np.random.default_rng([seed, 1])
    labels = torch.full((len(sizes), len(folds), max(sizes)), -1)
    held = []
    for place, size in enumerate(sizes):
        held.append([random_graphs(size, features, seed + place, **options)] * len(folds))
        truth = torch.from_numpy(rng.integers(0, classes, size))
        for position, fold in enumerate(folds):
            labels[place, position, :size] = torch.where(torch.arange(size) % 4 == fold + 1, -1, truth)
    return GraphCohort(held, labels, tuple(folds), classes)
