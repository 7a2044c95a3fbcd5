"""How like the true missing neighbours the generated ones are (FedNI eq. 8), and which is meant by which."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from brainfed.inpainting.fidelity.estimate import Estimate, estimate
from brainfed.inpainting.fidelity.families import Family
from brainfed.inpainting.fusing.fused import FusedGraph
from brainfed.inpainting.inputs import FloatArray, InpaintingInputs

IntArray = NDArray[np.int64]
FloatMatrix = NDArray[np.float64]
Blocks = dict[str, FloatMatrix]

BASELINES = ("mean_neighbour", "institution_mean", "parent")


@dataclass(frozen=True)
class CosineScore:
    """Cosine of one predictor with the true missing neighbours, a mean over parents.

    Attributes:
        to_all: a parent's value is the mean of cos(x_u, x_j) over its generated nodes u in G_i and all j in T_i.
        matched: the mean over the min(|G_i|, |T_i|) pairs of the assignment of G_i to T_i with the largest total cosine
            (Hungarian method). The best of several is taken, so `matched` exceeds `to_all` also for a predictor that
            knows nothing: read it against the baselines, which are matched in the same way.
    """

    to_all: Estimate
    matched: Estimate


@dataclass(frozen=True)
class CosineFidelity:
    """Generated features beside baselines, on the same parents.

    A baseline b_i stands in place of every generated node of i, |G_i| copies of it, so it is matched to as many:
    `mean_neighbour`: the plain mean of i's visible neighbours. `institution_mean`: the mean of the institution's fitted
    subjects. `parent`: i's own features.

    Attributes:
        generated: the generated nodes.
        baselines: name -> the same measure.
        gains: name -> generated minus that baseline, paired by parent; above 0 the generator is better.
    """

    generated: CosineScore
    baselines: dict[str, CosineScore]
    gains: dict[str, CosineScore]


@dataclass(frozen=True)
class FeatureFidelity:
    """Cosine of the features as they are, and after removing the mean of the parent's institution.

    Connectomes are much alike: the cosine of any two is dominated by the mean connectome, so that `cosine` is high for
    every predictor, and the higher the more subjects a predictor averages: a generator that only learnt the mean beats
    `mean_neighbour` there, so read it against `institution_mean`. `centred` takes the institution's mean from both
    sides: 0 is what knowing that mean alone is worth. There the baseline `institution_mean` has no direction, and its
    estimates have no mean. A vector of zeros has cosine 0 with everything.
    """

    cosine: CosineFidelity
    centred: CosineFidelity


@dataclass(frozen=True)
class Matches:
    """Generated nodes and the true missing neighbours they are taken for, by the largest total cosine of each parent.

    Attributes:
        node: (p,) positions among the generated nodes 0 ... g - 1.
        missing: (p,) positions of subjects.
        parent: (p,) positions of subjects.
    """

    node: IntArray
    missing: IntArray
    parent: IntArray


def compare_features(
    inputs: InpaintingInputs, fused: FusedGraph, families: Sequence[Family]
) -> tuple[FeatureFidelity, Matches]:
    """Score the generated features of families that all have missing and visible neighbours, and match their nodes."""
    features = inputs.features
    homes = np.unique(inputs.institution[[family.parent for family in families]]) if families else ()
    means = {int(home): _mean(features[inputs.members(int(home))]) for home in homes}
    raw: list[Blocks] = []
    centred: list[Blocks] = []
    for family in families:
        mean = means[int(inputs.institution[family.parent])]
        baselines = _mean(features[family.visible]), mean, features[family.parent]
        predictors = np.vstack([fused.features[family.generated], *baselines])
        true = features[family.missing]
        raw.append(_blocks(predictors, true))
        centred.append(_blocks(predictors - mean, true - mean))
        del centred[-1]["institution_mean"]
    return FeatureFidelity(_fidelity(raw), _fidelity(centred)), _matches(raw, families)


def _mean(rows: FloatArray) -> FloatArray:
    """Mean (d,) of rows (n, d), summed in float64, in the type of `rows`."""
    mean: FloatArray = rows.mean(axis=0, dtype=np.float64).astype(rows.dtype)
    return mean


def _blocks(predictors: FloatArray, true: FloatArray) -> Blocks:
    """Cosines (|G_i|, |T_i|) of each predictor of one family: the generated nodes, or as many copies of a baseline.

    Args:
        predictors: (|G_i| + 3, d), the generated nodes, then the baselines.
        true: (|T_i|, d).
    """
    cosine = np.asarray(_unit(predictors) @ _unit(true).T, dtype=np.float64)
    nodes = len(predictors) - len(BASELINES)
    copies = {name: np.tile(cosine[nodes + place], (nodes, 1)) for place, name in enumerate(BASELINES)}
    return {"generated": cosine[:nodes], **copies}


def _unit(rows: FloatArray) -> FloatArray:
    """Rows (n, d) divided by their length; a row of zeros stays."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length == 0, 1, length)


def _best(block: FloatMatrix) -> tuple[IntArray, IntArray]:
    """Rows and columns of the one-to-one assignment with the largest sum."""
    row, column = linear_sum_assignment(block, maximize=True)
    return row, column


def _fidelity(families: Sequence[Blocks]) -> CosineFidelity:
    """Means over parents, and gains paired by parent."""
    names = ("generated", *BASELINES)
    held = {name: [blocks[name] for blocks in families if name in blocks] for name in names}
    to_all = {name: np.array([block.mean() for block in held[name]]) for name in names}
    matched = {name: np.array([block[_best(block)].mean() for block in held[name]]) for name in names}
    return CosineFidelity(
        generated=CosineScore(estimate(to_all["generated"]), estimate(matched["generated"])),
        baselines={name: CosineScore(estimate(to_all[name]), estimate(matched[name])) for name in BASELINES},
        gains={name: CosineScore(_gain(to_all, name), _gain(matched, name)) for name in BASELINES},
    )


def _gain(values: Mapping[str, NDArray[np.float64]], baseline: str) -> Estimate:
    """Mean of generated minus baseline over parents; of nobody where the baseline has no values."""
    return estimate(values["generated"][: len(values[baseline])] - values[baseline])


def _matches(cosines: Sequence[Blocks], families: Sequence[Family]) -> Matches:
    node, missing, parent = [[np.zeros(0, np.int64)] for _ in range(3)]
    for blocks, family in zip(cosines, families, strict=True):
        row, column = _best(blocks["generated"])
        node.append(family.generated[row])
        missing.append(family.missing[column])
        parent.append(np.full(len(row), family.parent))
    return Matches(np.concatenate(node), np.concatenate(missing), np.concatenate(parent))
