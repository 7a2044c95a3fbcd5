"""Institutions of kinds whose graphs have their classes by different rules."""

import numpy as np

from brainfed.runtime import Streams
from brainfed.samples import GraphInputs, GraphSamples, hidden_labels

DENSE, ALIKE, SPARSE = "dense", "alike", "sparse"
"""What patients' graphs are: dense and not sparse; like nodes joined, and not any; sparse and not dense."""
LABELS = 8
"""Kinds of nodes of a graph under the rule `ALIKE`; the others have one."""
EVEN, TWO_KINDS, TURNED = (DENSE,) * 8, (DENSE, ALIKE) * 4, (DENSE, SPARSE) * 4
"""Rules of eight institutions."""


def kinds_of_graphs(rules=TWO_KINDS, graphs=60, folds=3, seed=0):
    """Inputs of an institution a rule, and the true classes; the names of institutions are their rules and places."""
    rng = np.random.default_rng([seed, 11])
    made = [_graph(rule, patient, rng) for rule in rules for patient in np.arange(graphs) % 2]
    sizes, edges = ([len(each[part]) for each in made] for part in (0, 1))
    count, truth = len(made), np.tile(np.arange(graphs) % 2, len(rules))
    fold = np.tile(np.arange(graphs) // 2 % folds, len(rules))
    samples = GraphSamples(
        np.cumsum([0, *sizes]),
        np.concatenate([nodes for nodes, _ in made]),
        np.cumsum([0, *edges]),
        *np.concatenate([pairs for _, pairs in made]).T,
        np.ones(sum(edges), dtype=np.float32),
    )
    return GraphInputs(
        subjects=tuple(f"sub-{number:04d}" for number in range(count)),
        institutions=tuple(f"{place}-{rule}" for place, rule in enumerate(rules)),
        institution=np.repeat(np.arange(len(rules)), graphs),
        fold=fold,
        labels=hidden_labels(truth, fold),
        streams=Streams(seed),
        graphs=(samples,),
    ), truth


def unmixed(clusters, rules):
    """Whether every cluster holds institutions of one rule."""
    return all(len({rule for rule, own in zip(rules, clusters, strict=True) if own == cluster}) == 1
               for cluster in set(clusters))  # fmt: skip


def _graph(rule, patient, rng):
    """One-hot nodes (k, 9) and edges (E, 2); edges are equally likely in both classes of `ALIKE`."""
    if rule == ALIKE:
        size = int(rng.integers(24, 32))
        label = 1 + np.arange(size) % LABELS
        chance = np.where(label[:, None] == label, 0.5, 0.05) if patient else (0.5 + (LABELS - 1) * 0.05) / LABELS
    else:
        size = int(rng.integers(12, 20))
        label, chance = np.zeros(size, dtype=int), 0.45 if patient == (rule == DENSE) else 0.15
    joined = np.triu(rng.random((size, size)) < chance, 1)
    return np.eye(1 + LABELS, dtype=np.float32)[label], np.argwhere(joined | joined.T)
