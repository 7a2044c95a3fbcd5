"""Whole graphs for `module_clients`: a local step runs the module on its own graphs alone.

It is the reference to which tests hold the fast engine; no method trains by it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from brainfed.engines.graphs import GraphCohort
from brainfed.engines.graphs._network import KeyedDropout
from brainfed.models import GIN
from brainfed.runtime import IntArray, Streams
from brainfed.samples import GraphSamples
from reference.module_clients import Cohort


def plain_cohort(cohort: GraphCohort, modules: Sequence[Sequence[GIN]], streams: Streams) -> Cohort:
    """The cohort of `ModuleClients`, with (M)(F) `modules` and dropout from keyed streams."""

    def alone(place: int, position: int, samples: Tensor, moment: tuple[int, int, int]) -> tuple[Any, ...]:
        module = modules[place][position]
        like = module.pre.weight
        arguments = _arguments(cohort.graphs[place][position].of(samples.cpu().numpy()), like)
        dropout = KeyedDropout(module.dropout, streams)
        key = (place, cohort.folds[position], *moment)
        rows = [len(arguments[0])] * module.layers + [len(samples)]
        draws = dropout.draws(key, [(count, module.hidden) for count in rows])
        return *arguments, [(each > dropout.bound).to(like) * dropout.scale for each in draws]

    every = [
        [_arguments(graphs, module.pre.weight) for graphs, module in zip(own, held, strict=True)]
        for own, held in zip(cohort.graphs, modules, strict=True)
    ]
    return Cohort(every, cohort.labels, cohort.subjects, cohort.folds, cohort.classes, alone, even_steps=False)


def _arguments(graphs: GraphSamples, like: Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
    """Nodes, edges, graph of each node, and number of graphs, as a GIN reads them."""
    first = np.repeat(graphs.node_start[:-1], np.diff(graphs.edge_start))
    edges = np.stack([graphs.source + first, graphs.target + first])
    nodes = torch.from_numpy(graphs.nodes).to(like)
    return nodes, _to(edges, like), _to(graph_of(graphs.node_start), like), len(graphs.node_start) - 1


def graph_of(node_start: IntArray) -> IntArray:
    """(N,) the graph of each node."""
    return np.repeat(np.arange(len(node_start) - 1), np.diff(node_start))


def _to(array: IntArray, like: Tensor) -> Tensor:
    return torch.from_numpy(array).to(like.device)
