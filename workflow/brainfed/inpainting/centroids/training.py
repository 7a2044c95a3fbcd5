"""Means of groups of similar subjects in place of missing neighbours: what can cross and is not a person.

Nothing is learnt. Each institution groups its own subjects and sends every other one the mean of each group.
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
    """The centroids of every institution, and how large the smallest and the largest group are; no label enters."""
    codes, least = range(len(inputs.institutions)), settings.min_group
    sizes = {code: len(inputs.members(code)) for code in codes if len(inputs.members(code))}
    groups = {code: groups_of(coordinates(inputs, code), least) for code in sizes}
    for done, (code, own) in enumerate(groups.items(), start=1):
        if not own:
            logger.warning(
                "%s sends no centroid: it has %d subjects to learn from, and a group needs %d (inpainting.min_group)",
                *(inputs.institutions[code], sizes[code], least),
            )
        run.progress(done, len(groups), "centroids, institution")
    members = [(code, inputs.members(code)[group]) for code, own in groups.items() for group in own]
    width = inputs.features.shape[1]
    ledger = Ledger(CENTROIDS_TENSORS, {"features": width}, "inpainting")
    sent = {"centroid": ((width,), 4), "centroid-sex": ((), 1), "centroid-age": ((), 8)}
    record_summaries(ledger, {code: len(own) for code, own in groups.items()}, sizes, sent)
    return TrainedGenerator(
        arrays={
            "institution": np.array([code for code, _ in members], dtype=np.int64),
            "features": _means(inputs, [group for _, group in members]),
            "sex": np.array([_most_frequent(inputs.sex[group], least) for _, group in members], dtype=np.int64),
            "age": np.array([_mean_of_known(inputs.age[group], least) for _, group in members], dtype=np.float64),
        },
        history=_history(inputs, groups),
        counts={"parameters": 0, "rounds": 1, "groups": len(members)},
        crossings=ledger.rows(),
    )


def load(inputs: InpaintingInputs, settings: CentroidSettings, file: ArrayFile, run: Run) -> ForeignCentroids:  # noqa: ARG001
    """The centroids, ready to be asked for those of other institutions."""
    arrays = file.arrays
    born = Generated(arrays["features"], arrays["sex"], arrays["age"])
    return ForeignCentroids(inputs, arrays["institution"], born)


def coordinates(inputs: InpaintingInputs, institution: int) -> FloatArray:
    """The institution's subjects (n, q), by its own data alone, so that their distances say how alike they are.

    Principal components of the features and each of sex and age, where the graph compares them, in units of their mean
    distance over pairs: each counts alike. Who has an unknown value lies in the middle.
    """
    members, settings = inputs.members(institution), inputs.graph_settings
    alone = replace(settings, scope="local", embedding="pca", distance="euclidean")
    one_place, everybody = np.zeros(len(members), dtype=np.int64), np.ones(len(members), dtype=np.bool_)
    blocks = [fit_parts(inputs.features[members], one_place, everybody, alone)[0]]
    if "sex" in settings.phenotypes:
        blocks.append(np.where(inputs.sex[members] < 0, 0.5, inputs.sex[members])[:, None])
    if "age" in settings.phenotypes:
        age = inputs.age[members]
        blocks.append(np.where(np.isnan(age), _mean_of_known(age, 1), age)[:, None])
    return np.concatenate([_in_units(block) for block in blocks], axis=1)


def _in_units(block: FloatArray) -> FloatArray:
    """By the mean distance of two rows; all 0 where they are equal, or none is known."""
    distance = mean_pairwise_distance(block) if np.isfinite(block).all() else 0.0
    return block / distance if distance > 0 else np.zeros_like(block)


def _means(inputs: InpaintingInputs, groups: list[IntArray]) -> NDArray[np.float32]:
    means = np.zeros((len(groups), inputs.features.shape[1]), dtype=np.float32)
    for place, group in enumerate(groups):
        means[place] = inputs.features[group].mean(axis=0, dtype=np.float64)
    return means


def _most_frequent(codes: IntArray, least: int) -> int:
    """Of the known codes, the smaller of two that are as frequent; -1 where fewer than `least` are known."""
    known = codes[codes >= 0]
    return int(np.bincount(known).argmax()) if len(known) >= least else -1


def _mean_of_known(values: FloatArray, least: int) -> float:
    """NaN where fewer than `least` are known."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) >= least else float("nan")


def _history(inputs: InpaintingInputs, groups: dict[int, list[IntArray]]) -> pd.DataFrame:
    """institution, round (1), loss (`smallest_group`, `largest_group`), value: subjects."""
    rows = [
        (inputs.institutions[code], 1, f"{name}_group", float(pick(len(group) for group in own)))
        for code, own in groups.items()
        for name, pick in (("smallest", min), ("largest", max))
        if own
    ]
    return pd.DataFrame(rows, columns=["institution", "round", "loss", "value"]).astype({"round": "int32"})
