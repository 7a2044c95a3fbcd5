"""One institution in federated inpainting: its nodes, its graph and its masks."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from brainfed.federation.privacy.weight_noise import normal
from brainfed.graphs.propagation import dense_block
from brainfed.inpainting.fedni.adversarial_step import MaskedGraph, Nodes
from brainfed.inpainting.fedni.losses import Phenotype
from brainfed.inpainting.fedni.masking import Adjacency, Mask, draw_mask
from brainfed.inpainting.inputs import InpaintingInputs, IntArray
from brainfed.inpainting.scaling import Scaling, scaling_of
from brainfed.inpainting.settings import InpaintingSettings
from brainfed.models.generator import NOISE
from brainfed.runtime.streams import Streams


@dataclass(frozen=True)
class Institution:
    """One institution and its training subjects, in order of their position.

    Attributes:
        number: its code.
        members: (n,) positions of its subjects.
        nodes: scaled features and normalised phenotypes, as tensors.
        adjacency: (n, n) with self-loops.
        edges: the same without self-loops.
        scaling: of the features into the range of the generator's tanh.
        age_mean, age_sd: years, for normalised ages.
    """

    number: int
    members: IntArray
    nodes: Nodes
    adjacency: Tensor
    edges: csr_array[np.float64, tuple[int, int]]
    scaling: Scaling
    age_mean: float
    age_sd: float


def institution_of(inputs: InpaintingInputs, number: int, device: torch.device, dtype: torch.dtype) -> Institution:
    """Institution `number`, from its own data alone."""
    members = inputs.members(number)
    scaling = scaling_of(inputs, number)
    age = inputs.age[members]
    known = np.isfinite(age).any()
    mean = float(np.nanmean(age)) if known else 0.0
    sd = float(np.nanstd(age)) if known else 1.0
    sd = sd or 1.0
    graph = inputs.graph
    dense = dense_block(graph.row, graph.column, graph.weight, members, graph.nodes)
    without_loops = dense.copy()
    np.fill_diagonal(without_loops, 0)
    features = torch.from_numpy(scaling.apply(inputs.features[members])).to(dtype)
    phenotype = Phenotype(torch.from_numpy(inputs.sex[members]), torch.from_numpy((age - mean) / sd).to(dtype))
    return Institution(
        number,
        members,
        Nodes(features.to(device), Phenotype(phenotype.sex.to(device), phenotype.age.to(device))),
        torch.from_numpy(dense).to(device, dtype),
        csr_array(without_loops),
        scaling,
        mean,
        sd,
    )


def normalised(adjacency: Tensor) -> Tensor:
    """D^-1/2 A D^-1/2 of a dense adjacency; an empty row stays empty."""
    scale = adjacency.sum(dim=1).clamp(min=0).rsqrt()
    scale = torch.where(torch.isfinite(scale), scale, 0)
    return scale[:, None] * adjacency * scale[None, :]


@dataclass(frozen=True)
class DrawnMask:
    """The mask of one local epoch.

    Attributes:
        mask: None where it has fewer than two pairs: batch normalisation needs two.
        noise: (p, 4) of its pairs, on the host.
        fraction: of hidden nodes.
    """

    mask: Mask | None
    noise: Tensor
    fraction: float


def drawn_mask(
    institution: Institution, epoch: int, part: str, streams: Streams, settings: InpaintingSettings
) -> DrawnMask:
    """The mask of one local epoch. Every node is a root once before any is a second time."""
    nodes = len(institution.members)
    cycle, place = divmod(epoch, nodes)
    root = int(streams.numpy("mask-roots", part, institution.number, cycle).permutation(nodes)[place])
    random = streams.numpy("mask", part, institution.number, epoch)
    mask = draw_mask(institution.edges, root, random, settings)
    fraction = len(mask.hidden) / nodes
    if len(mask.target) < 2:
        return DrawnMask(None, torch.empty(0, NOISE), fraction)
    noise = normal(streams, (len(mask.target), NOISE), "generator-noise", part, institution.number, epoch)
    return DrawnMask(mask, noise, fraction)


def visible_degree(edges: Adjacency, is_visible: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(n,) number of visible neighbours of each node, from the mask of visible nodes (n,)."""
    joined = csr_array((np.ones(edges.nnz), edges.indices, edges.indptr), shape=edges.shape)
    return np.asarray(joined @ is_visible.astype(np.float64))


def masked_graph(mask: Mask, institution: Institution, noise: Tensor) -> MaskedGraph:
    """The incomplete graph as tensors, with noise (p, 4) for its pairs."""
    adjacency = institution.adjacency
    device = adjacency.device
    is_visible = np.ones(len(adjacency), dtype=np.bool_)
    is_visible[mask.hidden] = False
    kept = torch.from_numpy(is_visible).to(device, adjacency.dtype)
    visible = np.flatnonzero(is_visible)
    missing = np.bincount(mask.visible, minlength=len(adjacency))[visible]
    degree = visible_degree(institution.edges, is_visible)[visible]
    return MaskedGraph(
        propagation=normalised(kept[:, None] * adjacency * kept[None, :]),
        visible=torch.from_numpy(visible).to(device),
        missing=torch.from_numpy(missing).to(device, adjacency.dtype),
        degree=torch.from_numpy(degree).to(device, adjacency.dtype),
        hidden=torch.from_numpy(mask.hidden).to(device),
        parent=torch.from_numpy(mask.visible).to(device),
        target=torch.from_numpy(mask.target).to(device),
        noise=noise.to(device, adjacency.dtype),
    )
