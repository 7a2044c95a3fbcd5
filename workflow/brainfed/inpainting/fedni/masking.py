"""Hide leaves of a breadth-first tree, for the generator to find again (FedNI Sec. III-B.1).

Whoever hides leaves of a spanning tree alone leaves the rest of the tree whole: no mask disconnects what
stays visible. A tree with few leaves, a path at worst, hides fewer nodes than were asked for.
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
    """Which of an institution's m nodes are hidden, and from whom; all are positions 0 ... m - 1.

    Attributes:
        hidden: (h,) hidden nodes, ascending.
        parents: (h,) their parents in the tree, which are visible; -1 under random masking.
        visible: (p,) visible nodes that miss a neighbour, once for each; pairs are in order of (visible, target).
        target: (p,) the hidden neighbour that is missed.
    """

    hidden: IntArray
    parents: IntArray
    visible: IntArray
    target: IntArray


def draw_mask(adjacency: Adjacency, root: int, random: np.random.Generator, settings: InpaintingSettings) -> Mask:
    """Draw one mask.

    Args:
        adjacency: (m, m), symmetric; weights do not matter, self-loops neither.
        root: where the tree of its component starts; other components start at random.
        random: tree, number and leaves are drawn in this order, so that random masking hides as many.
        settings: fractions, masking and targets.
    """
    nodes = adjacency.shape[0]
    parent, depth = _forest(adjacency, root, random)
    number = _number(nodes, settings, random)
    hidden = _leaves(parent, depth, random)[:number]
    if settings.masking == "random":
        hidden = np.sort(random.choice(nodes, len(hidden), replace=False))
        return Mask(hidden, np.full(len(hidden), -1), *_missed(adjacency, hidden))
    hidden = np.sort(hidden)
    if settings.targets == "neighbours":
        return Mask(hidden, parent[hidden], *_missed(adjacency, hidden))
    order = np.argsort(parent[hidden], kind="stable")
    return Mask(hidden, parent[hidden], parent[hidden][order], hidden[order])


def _number(nodes: int, settings: InpaintingSettings, random: np.random.Generator) -> int:
    """How many nodes to hide; rounding first mends products such as 0.29 * 100 = 28.999..."""
    most = math.floor(round(settings.hidden_most * nodes, 9))
    least = min(math.ceil(round(settings.hidden_least * nodes, 9)), most)
    return int(random.integers(least, most, endpoint=True))


def _forest(adjacency: Adjacency, root: int, random: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Parent (m,), -1 for roots and isolated nodes, and depth (m,) of each node in its breadth-first tree."""
    nodes = adjacency.shape[0]
    parent, depth = np.full(nodes, -1), np.zeros(nodes, dtype=np.int64)
    waiting = np.diff(adjacency.indptr) > 0
    while True:
        order, predecessor = breadth_first_order(adjacency, root)
        waiting[order] = False
        parent[order[1:]] = predecessor[order[1:]]
        for node in order[1:]:
            depth[node] = depth[parent[node]] + 1
        left = np.flatnonzero(waiting)
        if len(left) == 0:
            return parent, depth
        root = int(random.choice(left))


def _leaves(parent: IntArray, depth: IntArray, random: np.random.Generator) -> IntArray:
    """All leaves in the order in which they are hidden: depth after depth, at random inside a depth."""
    leaf = parent >= 0
    leaf[parent[leaf]] = False
    leaves = random.permutation(np.flatnonzero(leaf))
    turn = np.zeros(int(depth.max()) + 1, dtype=np.int64)
    depths = random.permutation(np.unique(depth[leaves]))
    turn[depths] = np.arange(len(depths))
    return leaves[np.argsort(turn[depth[leaves]], kind="stable")]


def _missed(adjacency: Adjacency, hidden: IntArray) -> tuple[IntArray, IntArray]:
    """Every edge from a visible node to a hidden one, in order of (visible, hidden)."""
    is_hidden = np.zeros(adjacency.shape[0], dtype=np.bool_)
    is_hidden[hidden] = True
    row = np.repeat(np.arange(adjacency.shape[0]), np.diff(adjacency.indptr))
    crossing = ~is_hidden[row] & is_hidden[adjacency.indices]
    visible, target = row[crossing], adjacency.indices[crossing].astype(np.int64)
    order = np.lexsort((target, visible))
    return visible[order], target[order]
