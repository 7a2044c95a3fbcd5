"""Means of groups of similar subjects in place of missing neighbours.

There is no training. Each institution groups its own subjects and sends the mean of each group to all others.
"""

import logging
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.federation.ledger import Ledger
from brainfed.federation.sharing import record_summaries
from brainfed.graphs.neighbours.similarity import mean_pairwise_distance
from brainfed.graphs.population.fitting import fit_parts
from brainfed.inpainting.centroids.foreign_centroids import ForeignCentroids
from brainfed.inpainting.centroids.microaggregation import groups_of
from brainfed.inpainting.centroids.settings import CENTROIDS_TENSORS, CentroidSettings
from brainfed.inpainting.inputs import Generated, InpaintingInputs, IntArray
from brainfed.inpainting.trained import TrainedGenerator
from brainfed.runtime.artefacts import ArrayFile
from brainfed.runtime.jobs.run import Run

logger = logging.getLogger(__name__)

FloatArray = NDArray[np.float64]


def train(inputs: InpaintingInputs, settings: CentroidSettings, run: Run) -> TrainedGenerator:
    """The centroids of every institution, and the sizes of its smallest and largest group; uses no label."""
    codes, min_group = range(len(inputs.institutions)), settings.min_group
    sizes = {code: len(inputs.members(code)) for code in codes if len(inputs.members(code))}
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
    ledger = Ledger(CENTROIDS_TENSORS, {"features": width}, "inpainting")
    sent = {"centroid": ((width,), 4), "centroid-sex": ((), 1), "centroid-age": ((), 8)}
    for name in {"sex", "age"} - set(inputs.graph_settings.phenotypes):
        del sent[f"centroid-{name}"]
    record_summaries(ledger, {code: len(own) for code, own in groups.items()}, sizes, sent)
    return TrainedGenerator(
        arrays={
            "institution": np.array([code for code, _ in members], dtype=np.int64),
            "features": _means(inputs, [group for _, group in members]),
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


def coordinates(inputs: InpaintingInputs, institution: int) -> FloatArray:
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
    return np.concatenate([_in_units(block) for block in blocks], axis=1)


def _in_units(block: FloatArray) -> FloatArray:
    """Divided by the mean distance of two rows; 0 where all are equal or unknown."""
    distance = mean_pairwise_distance(block) if np.isfinite(block).all() else 0.0
    return block / distance if distance > 0 else np.zeros_like(block)


def _means(inputs: InpaintingInputs, groups: list[IntArray]) -> NDArray[np.float32]:
    means = np.zeros((len(groups), inputs.features.shape[1]), dtype=np.float32)
    for place, group in enumerate(groups):
        means[place] = inputs.features[group].mean(axis=0, dtype=np.float64)
    return means


def _most_frequent(codes: IntArray, min_group: int) -> int:
    """The most frequent known code, the smaller of two equally frequent; -1 where fewer than `min_group` are known."""
    known = codes[codes >= 0]
    return int(np.bincount(known).argmax()) if len(known) >= min_group else -1


def _mean_of_known(values: FloatArray, min_group: int) -> float:
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
