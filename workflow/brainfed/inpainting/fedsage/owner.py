"""The impaired graph of one institution, a random tenth of its nodes hidden (Zhang et al. 2021, Sec. 4.1).

The impaired graph is induced on the visible nodes. The count target of a visible node is the number of its hidden
neighbours; a random choice of them are its feature targets.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.graphs.graph import Graph
from brainfed.graphs.propagation import dense_block
from brainfed.inpainting.fedsage.settings import FedSageSettings
from brainfed.inpainting.fedsage.wide import Targets
from brainfed.inpainting.inputs import FloatArray, InpaintingInputs, IntArray
from brainfed.inpainting.scaling import scaling_of


@dataclass(frozen=True)
class Owner:
    """An institution's impaired graph and its hidden nodes.

    Attributes:
        institution: its code.
        subjects: number of its nodes, hidden ones included.
        propagation: (v, v) row-normalised impaired adjacency.
        propagated: (v, d) propagation times features.
        counts: (v,) number of hidden neighbours.
        targeted: (t,) positions of visible nodes with hidden neighbours.
        missing: (h, d) features of the hidden nodes.
        neighbours: (t, h) bool mask of each node's targets among the hidden nodes.

    Features are scaled by the institution.
    """

    institution: int
    subjects: int
    propagation: Tensor
    propagated: Tensor
    counts: Tensor
    targeted: Tensor
    missing: Tensor
    neighbours: Tensor

    @property
    def visible(self) -> int:
        """Number of visible nodes v."""
        return len(self.counts)

    @property
    def targets(self) -> Targets:
        """Targets of generated features at this owner."""
        return Targets(self.missing, self.neighbours, self.visible)


def owners_of(
    inputs: InpaintingInputs, settings: FedSageSettings, device: torch.device, dtype: torch.dtype
) -> list[Owner]:
    """One owner for each institution with training subjects, in order of code."""
    codes = [code for code in range(len(inputs.institutions)) if len(inputs.members(code))]
    return [_owner(inputs, code, settings, device, dtype) for code in codes]


def row_normalised(graph: Graph, members: IntArray) -> NDArray[np.float64]:
    """(m, m) D^-1 A of the graph induced on `members`; an empty row stays 0."""
    block = dense_block(graph.row, graph.column, graph.weight, members, graph.nodes)
    degree = block.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(block, degree, out=np.zeros_like(block), where=degree > 0), dtype=np.float64)


def scaled_members(inputs: InpaintingInputs, institution: int) -> FloatArray:
    """The members' features (m, d), scaled into the range of tanh."""
    return scaling_of(inputs, institution).apply(inputs.features[inputs.members(institution)])


def hidden_nodes(inputs: InpaintingInputs, institution: int, fraction: float) -> IntArray:
    """Positions of the institution's hidden nodes, ascending; at least one node stays visible."""
    members = inputs.members(institution)
    count = min(round(fraction * len(members)), len(members) - 1)
    order = inputs.streams.numpy("fedsage-hidden", inputs.part, institution).permutation(members)
    return np.asarray(np.sort(order[:count]), dtype=np.int64)


def _owner(
    inputs: InpaintingInputs, institution: int, settings: FedSageSettings, device: torch.device, dtype: torch.dtype
) -> Owner:
    members = inputs.members(institution)
    features = torch.from_numpy(scaled_members(inputs, institution)).to(device, dtype)
    hidden = hidden_nodes(inputs, institution, settings.hidden_fraction)
    visible = np.setdiff1d(members, hidden)
    has_edge = _edges(inputs.graph, visible, hidden)
    order = inputs.streams.numpy("fedsage-targets", inputs.part, institution).permutation(len(hidden))
    chosen = np.zeros_like(has_edge)
    chosen[:, order] = has_edge[:, order] & (has_edge[:, order].cumsum(axis=1) <= settings.targets)
    targeted = np.flatnonzero(has_edge.any(axis=1))
    propagation = torch.from_numpy(row_normalised(inputs.graph, visible)).to(device, dtype)
    return Owner(
        institution=institution,
        subjects=len(members),
        propagation=propagation,
        propagated=propagation @ features[np.searchsorted(members, visible)],
        counts=torch.from_numpy(has_edge.sum(axis=1)).to(device, dtype),
        targeted=torch.from_numpy(targeted).to(device),
        missing=features[np.searchsorted(members, hidden)],
        neighbours=torch.from_numpy(chosen[targeted]).to(device),
    )


def _edges(graph: Graph, receivers: IntArray, senders: IntArray) -> NDArray[np.bool_]:
    """(receivers, senders) bool mask of edges."""
    row_place, column_place = np.full(graph.nodes, -1), np.full(graph.nodes, -1)
    row_place[receivers] = np.arange(len(receivers))
    column_place[senders] = np.arange(len(senders))
    row, column = row_place[graph.row], column_place[graph.column]
    inside = (row >= 0) & (column >= 0)
    joined = np.zeros((len(receivers), len(senders)), dtype=bool)
    joined[row[inside], column[inside]] = True
    return joined
