"""One institution in federated inpainting: its graph, and the leaves that are hidden (FedNI Sec. III-B.1)."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order
from torch import Tensor

from brainfed.federation import normal
from brainfed.graphs import dense_block
from brainfed.inpainting import InpaintingInputs, InpaintingSettings, Scaling, scaling_of
from brainfed.inpainting.fedni._adversarial_step import MaskedGraph, Nodes
from brainfed.inpainting.fedni._losses import Phenotype
from brainfed.models import NOISE
from brainfed.runtime import BoolArray, Float64, IntArray, Streams

# Hide leaves of a breadth-first tree; the generator learns to predict them (FedNI Sec. III-B.1).
#
# Leaves of a spanning tree can be removed without disconnecting the rest. A tree with few leaves, such as a path, hides
# fewer nodes than the settings ask for.


Adjacency = csr_array[np.float64, tuple[int, int]] | csr_array[np.float32, tuple[int, int]]


@dataclass(frozen=True)
class Mask:
    """Hidden nodes of an institution's m, and their visible neighbours; all are positions 0 ... m - 1.

    Attributes:
        hidden: (h,) hidden nodes, ascending.
        parents: (h,) their parents in the tree, which are visible; -1 under random masking.
        visible: (p,) visible end of each pair; pairs are in order of (visible, target).
        target: (p,) hidden end of each pair.
    """

    hidden: IntArray
    parents: IntArray
    visible: IntArray
    target: IntArray


def draw_mask(adjacency: Adjacency, root: int, random: np.random.Generator, settings: InpaintingSettings) -> Mask:
    """Draw one mask.

    FedNI eq. 3: G- = f_bfs(G; v_r; b), v_r the root and b the depth of the hidden leaves; then leaves of other depths
    until enough are hidden.

    Args:
        adjacency: (m, m), symmetric; weights do not matter, self-loops neither.
        root: v_r; the trees of other components have random roots.
        random: draws tree, number and leaves in this order, so that random masking hides as many.
    """
    nodes = adjacency.shape[0]
    parent, depth = _forest(adjacency, root, random)
    number = _number(nodes, settings, random)
    hidden = _leaves(parent, depth, random)[:number]
    if settings.masking == "random":
        hidden = np.sort(random.choice(nodes, len(hidden), replace=False))
        return Mask(hidden, np.full(len(hidden), -1), *_hidden_edges(adjacency, hidden))
    hidden = np.sort(hidden)
    if settings.targets == "neighbours":
        return Mask(hidden, parent[hidden], *_hidden_edges(adjacency, hidden))
    order = np.argsort(parent[hidden], kind="stable")
    return Mask(hidden, parent[hidden], parent[hidden][order], hidden[order])


def _number(nodes: int, settings: InpaintingSettings, random: np.random.Generator) -> int:
    """Number of nodes to hide; rounding first mends products such as 0.29 * 100 = 28.999..."""
    maximum = math.floor(round(settings.hidden_most * nodes, 9))
    minimum = min(math.ceil(round(settings.hidden_least * nodes, 9)), maximum)
    return int(random.integers(minimum, maximum, endpoint=True))


def _forest(adjacency: Adjacency, root: int, random: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Parent (m,), -1 for roots and isolated nodes, and depth (m,) of each node in its breadth-first tree."""
    nodes = adjacency.shape[0]
    parent = np.full(nodes, -1)
    unvisited = np.diff(adjacency.indptr) > 0
    while True:
        order, predecessor = breadth_first_order(adjacency, root)
        unvisited[order] = False
        parent[order[1:]] = predecessor[order[1:]]
        left = np.flatnonzero(unvisited)
        if len(left) == 0:
            return parent, _depth(parent)
        root = int(random.choice(left))


def _depth(parent: IntArray) -> IntArray:
    """(m,) number of ancestors, a generation of all nodes at a time."""
    depth, ancestor = np.zeros(len(parent), dtype=np.int64), parent
    while (has_one := ancestor >= 0).any():
        depth += has_one
        ancestor = np.where(has_one, parent[ancestor], -1)
    return depth


def _leaves(parent: IntArray, depth: IntArray, random: np.random.Generator) -> IntArray:
    """All leaves in the order of hiding: one depth after another, depths and leaves of a depth at random."""
    leaf = parent >= 0
    leaf[parent[leaf]] = False
    leaves = random.permutation(np.flatnonzero(leaf))
    order_of_depth = np.zeros(int(depth.max()) + 1, dtype=np.int64)
    depths = random.permutation(np.unique(depth[leaves]))
    order_of_depth[depths] = np.arange(len(depths))
    return leaves[np.argsort(order_of_depth[depth[leaves]], kind="stable")]


def _hidden_edges(adjacency: Adjacency, hidden: IntArray) -> tuple[IntArray, IntArray]:
    """Every edge from a visible node to a hidden one, in order of (visible, hidden)."""
    is_hidden = np.zeros(adjacency.shape[0], dtype=np.bool_)
    is_hidden[hidden] = True
    row = np.repeat(np.arange(adjacency.shape[0]), np.diff(adjacency.indptr))
    crossing = ~is_hidden[row] & is_hidden[adjacency.indices]
    visible, target = row[crossing], adjacency.indices[crossing].astype(np.int64)
    order = np.lexsort((target, visible))
    return visible[order], target[order]


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


def visible_degree(edges: Adjacency, is_visible: BoolArray) -> Float64:
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
