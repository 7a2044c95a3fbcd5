"""Centroids of other institutions as a source of new nodes: each joins its most similar subject."""

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.neighbours.search import nearest
from brainfed.inpainting.fusing.placing import place
from brainfed.inpainting.inputs import Generated, InpaintingInputs, IntArray


class ForeignCentroids:
    """A `NodeGenerator` that adds the centroids of other institutions to the graph of an institution.

    A centroid's parent is the most similar subject of the institution by the population graph's rule. A centroid
    without similarity to any subject is left out.

    Args:
        inputs: of the job.
        source: (c,) institution of each centroid.
        centroids: (c,) of all institutions.
    """

    def __init__(self, inputs: InpaintingInputs, source: IntArray, centroids: Generated) -> None:
        self._inputs, self._centroids = inputs, centroids
        codes = [code for code in range(len(inputs.institutions)) if len(inputs.members(code))]
        pairs = [(code, centroid) for code in codes for centroid in np.flatnonzero(source != code).tolist()]
        home = np.array([code for code, _ in pairs], dtype=np.int64)
        which = np.array([centroid for _, centroid in pairs], dtype=np.int64)
        self._parent, self._which = self._ordered(home, which)

    def counts(self) -> NDArray[np.float64]:
        """(n,) number of centroids whose parent is this subject."""
        return np.bincount(self._parent, minlength=len(self._inputs.subjects)).astype(np.float64)

    def draw(self, parents: IntArray) -> Generated:
        """The r-th of equal parents gets the r-th most similar of its centroids."""
        first = np.searchsorted(self._parent, parents)
        rank = np.zeros(len(parents), dtype=np.int64)
        order = np.argsort(parents, kind="stable")
        rank[order] = np.arange(len(parents)) - np.searchsorted(parents[order], parents[order])
        return self._nodes(self._which[first + rank])

    def _nodes(self, which: IntArray) -> Generated:
        held = self._centroids
        return Generated(held.features[which], held.sex[which], held.age[which], np.full(len(which), -1))

    def _ordered(self, home: IntArray, which: IntArray) -> tuple[IntArray, IntArray]:
        """Ascending parents and their centroids, the most similar first, for centroids `which` (p,) in `home` (p,)."""
        inputs, count = self._inputs, len(self._inputs.subjects)
        unknown = np.full(len(home), -1, dtype=np.int64)
        parent, weight = unknown.copy(), np.zeros(len(home))
        placed = place(inputs, home, self._nodes(which), unknown)
        for code, part in placed.parts.items():
            mine, members = np.flatnonzero(home == code), inputs.members(code)
            found = nearest(
                *(placed.nodes.take(count + mine), placed.nodes.take(members), part.sigma),
                k=1,
                age_gap=inputs.graph_settings.age_gap,
            )
            parent[mine[found.row]], weight[mine[found.row]] = members[found.column], found.weight
        joined = np.flatnonzero(parent >= 0)
        order = joined[np.lexsort((which[joined], -weight[joined], parent[joined]))]
        return parent[order], which[order]
