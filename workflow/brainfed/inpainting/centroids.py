"""Means of small groups of subjects of other institutions, in place of generated neighbours."""

import logging
from dataclasses import replace

import numpy as np
import pandas as pd

from brainfed.federation import Ledger, record_summaries
from brainfed.graphs import fit_parts, mean_pairwise_distance, nearest
from brainfed.inpainting._fusing import place
from brainfed.inpainting._inputs import Generated, InpaintingInputs, TrainedGenerator, rank_among_equals
from brainfed.inpainting._settings import CENTROIDS_TENSORS, CentroidSettings
from brainfed.runtime import ArrayFile, Float64, IntArray
from brainfed.runtime.jobs import Run

# Groups of similar subjects of a minimum size, by microaggregation.
#
# Domingo-Ferrer and Torra (2005), Data Mining and Knowledge Discovery 11, MDAV-generic: groups are formed
# around the subject farthest from the mean, then around the subject farthest from that one.


def groups_of(points: Float64, min_group: int) -> list[IntArray]:
    """Positions of the subjects of each group, ascending; a group has `min_group` to 2 `min_group` - 1 subjects.

    Args:
        points: (n, q) subjects, in coordinates whose distances measure dissimilarity.
        min_group: subjects of a group; no group where n is smaller.
    """
    remaining = np.arange(len(points))
    groups: list[IntArray] = []
    while len(remaining) >= 2 * min_group:
        edge = remaining[_farthest(points[remaining], points[remaining].mean(axis=0))]
        around, remaining = _around(points, remaining, edge, min_group)
        groups.append(around)
        if len(remaining) >= 2 * min_group:
            opposite = remaining[_farthest(points[remaining], points[edge])]
            around, remaining = _around(points, remaining, opposite, min_group)
            groups.append(around)
    return [*groups, remaining] if len(remaining) >= min_group else groups


def _farthest(points: Float64, origin: Float64) -> int:
    return int(np.argmax(_squared_distances(points, origin)))


def _around(points: Float64, remaining: IntArray, centre: np.int64, size: int) -> tuple[IntArray, IntArray]:
    """The `size` of `remaining` nearest to `centre`, with itself, and the others; both ascending."""
    order = np.argsort(_squared_distances(points[remaining], points[centre]), kind="stable")
    return np.sort(remaining[order[:size]]), np.sort(remaining[order[size:]])


def _squared_distances(points: Float64, origin: Float64) -> Float64:
    return np.asarray(np.square(points - origin).sum(axis=1))


class ForeignCentroids:
    """A `NodeGenerator` that adds the centroids of other institutions to the graph of an institution.

    A centroid's parent is the most similar subject of the institution by the population graph's rule. A centroid
    without similarity to any subject is left out.

    Args:
        source: (c,) institution of each centroid.
        centroids: (c,) of all institutions.
    """

    def __init__(self, inputs: InpaintingInputs, source: IntArray, centroids: Generated) -> None:
        self._inputs, self._centroids = inputs, centroids
        pairs = [(code, centroid) for code in inputs.learning for centroid in np.flatnonzero(source != code).tolist()]
        home = np.array([code for code, _ in pairs], dtype=np.int64)
        which = np.array([centroid for _, centroid in pairs], dtype=np.int64)
        self._parent, self._which = self._ordered(home, which)

    def counts(self) -> Float64:
        """(n,) number of centroids whose parent is this subject."""
        return np.bincount(self._parent, minlength=len(self._inputs.subjects)).astype(np.float64)

    def draw(self, parents: IntArray) -> Generated:
        """The r-th of equal parents gets the r-th most similar of its centroids."""
        return self._nodes(self._which[np.searchsorted(self._parent, parents) + rank_among_equals(parents)])

    def _nodes(self, which: IntArray) -> Generated:
        every = self._centroids
        return Generated(every.features[which], every.sex[which], every.age[which], np.full(len(which), -1))

    def _ordered(self, home: IntArray, which: IntArray) -> tuple[IntArray, IntArray]:
        """Ascending parents and their centroids, the most similar first, for centroids `which` (p,) in `home` (p,)."""
        inputs, count = self._inputs, len(self._inputs.subjects)
        unknown = np.full(len(home), -1, dtype=np.int64)
        parent, weight = unknown.copy(), np.zeros(len(home))
        placed = place(inputs, home, self._nodes(which), unknown)
        for code, part in placed.parts.items():
            mine, members = np.flatnonzero(home == code), inputs.members(code)
            new, subjects = placed.nodes.take(count + mine), placed.nodes.take(members)
            edges = nearest(new, subjects, part.sigma, k=1, age_gap=inputs.graph_settings.age_gap)
            parent[mine[edges.row]], weight[mine[edges.row]] = members[edges.column], edges.weight
        joined = np.flatnonzero(parent >= 0)
        order = joined[np.lexsort((which[joined], -weight[joined], parent[joined]))]
        return parent[order], which[order]


# Means of groups of similar subjects in place of missing neighbours.
#
# There is no training. Each institution groups its own subjects and sends the mean of each group to all others.

logger = logging.getLogger(__name__)


def train(inputs: InpaintingInputs, settings: CentroidSettings, run: Run) -> TrainedGenerator:
    """The centroids of every institution, and the sizes of its smallest and largest group; uses no label."""
    min_group, sizes = settings.min_group, {code: len(inputs.members(code)) for code in inputs.learning}
    groups = {code: groups_of(coordinates(inputs, code), min_group) for code in sizes}
    for done, (code, own) in enumerate(groups.items(), start=1):
        if not own:
            logger.warning(
                "%s sends no centroid: it has %d subjects to learn from, and a group needs %d (inpainting.min_group)",
                *(inputs.institutions[code], sizes[code], min_group),
            )
        run.progress(done, len(groups), "centroids, institution")
    members = [(code, inputs.members(code)[group]) for code, own in groups.items() for group in own]
    width = inputs.features.shape[1]
    means = np.zeros((len(members), width), dtype=np.float32)
    for row, (_, group) in enumerate(members):
        means[row] = inputs.features[group].mean(axis=0, dtype=np.float64)
    ledger = Ledger(CENTROIDS_TENSORS, {"features": width}, "inpainting")
    sent = {"centroid": ((width,), 4), "centroid-sex": ((), 1), "centroid-age": ((), 8)}
    for name in {"sex", "age"} - set(inputs.graph_settings.phenotypes):
        del sent[f"centroid-{name}"]
    record_summaries(ledger, {code: len(own) for code, own in groups.items()}, sizes, sent)
    return TrainedGenerator(
        arrays={
            "institution": np.array([code for code, _ in members], dtype=np.int64),
            "features": means,
            "sex": np.array([_most_frequent(inputs.sex[group], min_group) for _, group in members], dtype=np.int64),
            "age": np.array([_mean_of_known(inputs.age[group], min_group) for _, group in members], dtype=np.float64),
        },
        history=_history(inputs, groups),
        counts={"parameters": 0, "rounds": 1, "groups": len(members)},
        crossings=ledger.rows(),
    )


def load(inputs: InpaintingInputs, settings: CentroidSettings, file: ArrayFile, run: Run) -> ForeignCentroids:  # noqa: ARG001
    """The centroids as a source of new nodes."""
    arrays = file.arrays
    centroids = Generated(arrays["features"], arrays["sex"], arrays["age"])
    return ForeignCentroids(inputs, arrays["institution"], centroids)


def coordinates(inputs: InpaintingInputs, institution: int) -> Float64:
    """Coordinates (n, q) of the institution's subjects, from its own data alone; distances measure dissimilarity.

    They are principal components of the features, and sex and age where the graph compares them, each divided by its
    mean distance over pairs for equal weight. An unknown value lies in the middle.
    """
    members, settings = inputs.members(institution), inputs.graph_settings
    alone = replace(settings, scope="local", embedding="pca", distance="euclidean")
    one_place, fitted = np.zeros(len(members), dtype=np.int64), np.ones(len(members), dtype=np.bool_)
    blocks = [fit_parts(inputs.features[members], one_place, fitted, alone)[0]]
    if "sex" in settings.phenotypes:
        blocks.append(np.where(inputs.sex[members] < 0, 0.5, inputs.sex[members])[:, None])
    if "age" in settings.phenotypes:
        age = inputs.age[members]
        blocks.append(np.where(np.isnan(age), _mean_of_known(age, 1), age)[:, None])
    distances = [mean_pairwise_distance(block) if np.isfinite(block).all() else 0.0 for block in blocks]
    # 0 where all are equal or unknown.
    scaled = [block / each if each > 0 else np.zeros_like(block) for block, each in zip(blocks, distances, strict=True)]
    return np.concatenate(scaled, axis=1)


def _most_frequent(codes: IntArray, min_group: int) -> int:
    """The most frequent known code, the smaller of two equally frequent; -1 where fewer than `min_group` are known."""
    known = codes[codes >= 0]
    return int(np.bincount(known).argmax()) if len(known) >= min_group else -1


def _mean_of_known(values: Float64, min_group: int) -> float:
    """The mean of known values; NaN where fewer than `min_group` are known."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) >= min_group else float("nan")


def _history(inputs: InpaintingInputs, groups: dict[int, list[IntArray]]) -> pd.DataFrame:
    """Columns institution, round (1), loss (`smallest_group`, `largest_group`) and value (subjects)."""
    rows = [
        (inputs.institutions[code], 1, f"{name}_group", float(pick(len(group) for group in own)))
        for code, own in groups.items()
        for name, pick in (("smallest", min), ("largest", max))
        if own
    ]
    return pd.DataFrame(rows, columns=["institution", "round", "loss", "value"]).astype({"round": "int32"})
