"""Sampled training of FedGCN and FedNI's classifier: features stay pages of their file, a step reads few of them."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from brainfed.engines.stacked.stacks import Member, Stack, members, normalised, stack_labels
from brainfed.engines.stacked.training import StackSize, axes_of, train_stacks
from brainfed.federation.ledger import Ledger
from brainfed.graphs.propagation import block_edges
from brainfed.graphs.sampling import Incoming
from brainfed.methods.gcn.fedgcn import FedGCNSettings
from brainfed.models.sampled_network import IntArray, Part, SampledNetwork
from brainfed.models.stacked_network import Architecture
from brainfed.runtime.jobs.run import Run
from brainfed.samples.inputs import MethodInputs, Outcome


def train_sampled(
    inputs: MethodInputs, settings: FedGCNSettings, run: Run, shared_tensors: Mapping[str, tuple[str, ...]]
) -> Outcome:
    """Train with at most `settings.neighbours` of a node's neighbours a step; see `Outcome` for the shapes."""
    device, dtype = torch.device(run.device), getattr(torch, run.precision)
    architecture = Architecture(inputs.features[0].shape[1], settings.hidden, graph=True)
    ledger = Ledger(shared_tensors, axes_of(architecture))
    first, second = settings.neighbours

    def build(folds: Sequence[int]) -> tuple[Stack, SampledNetwork]:
        trained = members(inputs, folds, pooled=False, standardise=settings.standardise == "institution")
        stack = Stack(trained, (), None, stack_labels(inputs, trained, folds).to(device))
        parts = _parts(inputs, trained, folds, device, dtype)
        return stack, SampledNetwork(architecture, parts, (first, second), folds, inputs.streams, device, dtype)

    size = StackSize(architecture.parameters, None, 0)
    return train_stacks(inputs, settings, run, ledger, build, size)


def _parts(
    inputs: MethodInputs, trained: tuple[Member, ...], folds: Sequence[int], device: torch.device, dtype: torch.dtype
) -> list[list[Part]]:
    """(M)(F): each institution's own edges; the folds share them where they share the graph."""
    graphs = [(*normalised(graph), graph.nodes) for graph in inputs.graphs]
    found = []
    for member in trained:
        own = [
            Incoming.of_edges(*block_edges(row, column, value, member.nodes, nodes), len(member.nodes))
            for row, column, value, nodes in graphs
        ]
        found.append(
            [
                Part(
                    len(member.nodes),
                    own[fold if len(own) > 1 else 0],
                    _Rows(inputs, member, position, fold, device, dtype),
                )
                for position, fold in enumerate(folds)
            ]
        )
    return found


class _Rows:
    """Scaled features of some nodes of one institution in one fold, read when they are asked for."""

    def __init__(
        self, inputs: MethodInputs, member: Member, position: int, fold: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        self._features = inputs.fold_features(fold)
        self._nodes = member.nodes
        self._moments = [
            None if moments is None else torch.from_numpy(np.asarray(moments[position])).to(device, dtype)
            for moments in (member.mean, member.sd)
        ]
        self._device, self._dtype = device, dtype

    def __call__(self, positions: IntArray) -> Tensor:
        rows = torch.from_numpy(self._features[self._nodes[positions]]).to(self._device, self._dtype)
        mean, sd = self._moments
        return rows if mean is None or sd is None else (rows - mean) / sd
