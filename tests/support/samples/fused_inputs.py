"""Fused graphs for the tests of methods, made by a rule that anyone can follow in place of a trained generator."""

from dataclasses import replace

import numpy as np

from brainfed.inpainting import FusedGraph


def with_fused(inputs):
    """The same inputs with fused graphs in place of graphs.

    Every second subject that may be learnt from gets one generated neighbour, whose features are half of its own.
    """
    inductive = len(inputs.graphs) > 1
    fused = tuple(
        fused_graph(inputs, graph, ~inputs.tested(fold) if inductive else np.ones(len(inputs.subjects), dtype=bool))
        for fold, graph in enumerate(inputs.graphs)
    )
    return replace(inputs, graphs=(), fused=fused)


def fused_graph(inputs, graph, fitted):
    n = graph.nodes
    parent = np.flatnonzero(fitted)[::2]
    new = n + np.arange(len(parent))
    row = np.concatenate([graph.row, parent, new, new])
    column = np.concatenate([graph.column, new, parent, new])
    weight = np.concatenate([graph.weight, np.ones(3 * len(parent), dtype=np.float32)])
    order = np.lexsort((column, row))
    count = np.zeros(n)
    count[parent] = 1
    return FusedGraph(
        row=row[order],
        column=column[order],
        weight=weight[order],
        features=inputs.features[0][parent] / 2,
        institution=inputs.institution[parent],
        parent=parent,
        sex=np.full(len(parent), -1),
        age=np.full(len(parent), np.nan),
        count=count,
    )


def without_nodes(inputs):
    """The same inputs without a single generated node."""
    return replace(inputs, fused=tuple(_real_part(fused, len(inputs.subjects)) for fused in inputs.fused))


def _real_part(fused, n):
    real = (fused.row < n) & (fused.column < n)
    edges = {name: getattr(fused, name)[real] for name in ("row", "column", "weight")}
    nodes = {name: getattr(fused, name)[:0] for name in ("features", "institution", "parent", "sex", "age")}
    return replace(fused, **edges, **nodes)
