"""Hide leaves of a breadth-first tree; the generator learns to predict them (FedNI Sec. III-B.1).

Leaves of a spanning tree can be removed without disconnecting the rest. A tree with few leaves, such as a path, hides
fewer nodes than the settings ask for.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from brainfed.inpainting.settings import InpaintingSettings

IntArray = NDArray[np.int64]
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
        settings: fractions, masking and targets.
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
