"""Generated and true missing neighbours, matched by their features."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from brainfed.graphs import Edges
from brainfed.inpainting._inputs import FusedGraph, InpaintingInputs
from brainfed.runtime import Float64, FloatArray, IntArray


@dataclass(frozen=True)
class Estimate:
    """The mean of one value a parent, with its standard error.

    Parents share true neighbours, so the error is slightly too small.

    Attributes:
        mean: None without parents.
        error: standard deviation over parents / sqrt(parents); None below two parents.
        parents: number of values.
    """

    mean: float | None
    error: float | None
    parents: int


def estimate(values: Float64) -> Estimate:
    """Mean and standard error of finite values (parents,)."""
    count = len(values)
    mean = float(values.mean()) if count else None
    error = float(values.std(ddof=1) / np.sqrt(count)) if count > 1 else None
    return Estimate(mean, error, count)


def ratio(numerator: float, denominator: float) -> float | None:
    """The quotient; None where the denominator is 0."""
    return float(numerator / denominator) if denominator else None


@dataclass(frozen=True)
class Neighbourhood:
    """The neighbours of one subject with at least one generated node.

    Attributes:
        parent: position i of the subject.
        generated: (a,) its generated nodes G_i, positions among the generated nodes 0 ... g - 1.
        missing: (b,) its true missing neighbours T_i: foreign subjects with a cut edge to it.
        visible: (c,) its neighbours inside the institution, without itself.
    """

    parent: int
    generated: IntArray
    missing: IntArray
    visible: IntArray


def neighbourhoods(inputs: InpaintingInputs, fused: FusedGraph, cut: Edges) -> tuple[Neighbourhood, ...]:
    """The neighbourhood of every parent, in order of its position."""
    count = len(inputs.institution)
    generated = grouped(fused.parent, np.arange(len(fused.parent)), count)
    missing = grouped(cut.row, cut.column, count)
    others = inputs.graph.row != inputs.graph.column
    visible = grouped(inputs.graph.row[others], inputs.graph.column[others], count)
    parents = np.unique(fused.parent).tolist()
    return tuple(Neighbourhood(parent, generated[parent], missing[parent], visible[parent]) for parent in parents)


def grouped(row: IntArray, column: IntArray, rows: int) -> list[IntArray]:
    """The columns of each row 0 ... rows - 1, ascending."""
    order = np.lexsort((column, row))
    return np.split(column[order], np.cumsum(np.bincount(row, minlength=rows))[:-1])


# Similarity of generated and true missing neighbours, and their matching.

Blocks = dict[str, Float64]

BASELINES = ("mean_neighbour", "institution_mean", "parent")


@dataclass(frozen=True)
class CosineScore:
    """Cosine of one predictor with the true missing neighbours, a mean over parents.

    Attributes:
        to_all: a parent's value is the mean of cos(x_u, x_j) over its generated nodes u in G_i and all j in T_i.
        matched: the mean over the min(|G_i|, |T_i|) pairs of the assignment of G_i to T_i with the largest total cosine
            (Hungarian method). It takes the best of several, so `matched` exceeds `to_all` for uninformed predictors
            too: compare it with the baselines, which are matched in the same way.
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
    """Cosine of the features, and of the features minus the mean of the parent's institution (`centred`).

    The mean connectome dominates the cosine of any two connectomes. So `cosine` is high for every predictor, and higher
    the more subjects a predictor averages: compare a generator with `institution_mean`, not with `mean_neighbour`. A
    predictor that knows only the institution's mean has a `centred` cosine of 0. There the baseline `institution_mean`
    is a vector of zeros, and its estimates have no mean. A vector of zeros has cosine 0 with every vector.
    """

    cosine: CosineFidelity
    centred: CosineFidelity


@dataclass(frozen=True)
class Matches:
    """Pairs of generated nodes and true missing neighbours, by the largest total cosine of each parent.

    Attributes:
        node: (p,) positions among the generated nodes 0 ... g - 1.
        missing: (p,) positions of subjects.
        parent: (p,) positions of subjects.
    """

    node: IntArray
    missing: IntArray
    parent: IntArray


def compare_features(
    inputs: InpaintingInputs, fused: FusedGraph, neighbourhoods: Sequence[Neighbourhood]
) -> tuple[FeatureFidelity, Matches]:
    """Score and match the generated nodes of neighbourhoods with missing and visible neighbours."""
    features = inputs.features
    homes = (
        np.unique(inputs.institution[[neighbourhood.parent for neighbourhood in neighbourhoods]])
        if neighbourhoods
        else ()
    )
    means = {int(home): _mean(features[inputs.members(int(home))]) for home in homes}
    raw: list[Blocks] = []
    centred: list[Blocks] = []
    for neighbourhood in neighbourhoods:
        mean = means[int(inputs.institution[neighbourhood.parent])]
        baselines = _mean(features[neighbourhood.visible]), mean, features[neighbourhood.parent]
        predictors = np.vstack([fused.features[neighbourhood.generated], *baselines])
        true = features[neighbourhood.missing]
        raw.append(_blocks(predictors, true))
        centred.append(_blocks(predictors - mean, true - mean))
        del centred[-1]["institution_mean"]
    return FeatureFidelity(_fidelity(raw), _fidelity(centred)), _matches(raw, neighbourhoods)


def _mean(rows: FloatArray) -> FloatArray:
    """Mean (d,) of rows (n, d), summed in float64, in the type of `rows`."""
    mean: FloatArray = rows.mean(axis=0, dtype=np.float64).astype(rows.dtype)
    return mean


def _blocks(predictors: FloatArray, true: FloatArray) -> Blocks:
    """Cosines (|G_i|, |T_i|) of each predictor in a neighbourhood: generated nodes, or as many copies of a baseline.

    Args:
        predictors: (|G_i| + 3, d), the generated nodes, then the baselines.
        true: (|T_i|, d).
    """
    cosine = np.asarray(_unit(predictors) @ _unit(true).T, dtype=np.float64)
    nodes = len(predictors) - len(BASELINES)
    copies = {name: np.tile(cosine[nodes + place], (nodes, 1)) for place, name in enumerate(BASELINES)}
    return {"generated": cosine[:nodes], **copies}


def _unit(rows: FloatArray) -> FloatArray:
    """Rows (n, d) of length 1; a row of zeros stays."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length == 0, 1, length)


def _best(block: Float64) -> tuple[IntArray, IntArray]:
    """Rows and columns of the one-to-one assignment with the largest sum."""
    row, column = linear_sum_assignment(block, maximize=True)
    return row, column


def _fidelity(neighbourhoods: Sequence[Blocks]) -> CosineFidelity:
    """Means over parents, and gains paired by parent."""
    names = ("generated", *BASELINES)
    cosines = {name: [blocks[name] for blocks in neighbourhoods if name in blocks] for name in names}
    to_all = {name: np.array([block.mean() for block in cosines[name]]) for name in names}
    matched = {name: np.array([block[_best(block)].mean() for block in cosines[name]]) for name in names}
    return CosineFidelity(
        generated=CosineScore(estimate(to_all["generated"]), estimate(matched["generated"])),
        baselines={name: CosineScore(estimate(to_all[name]), estimate(matched[name])) for name in BASELINES},
        gains={name: CosineScore(_gain(to_all, name), _gain(matched, name)) for name in BASELINES},
    )


def _gain(values: Mapping[str, Float64], baseline: str) -> Estimate:
    """Mean of generated minus baseline over parents; over none where the baseline has no values."""
    return estimate(values["generated"][: len(values[baseline])] - values[baseline])


def _matches(cosines: Sequence[Blocks], neighbourhoods: Sequence[Neighbourhood]) -> Matches:
    node, missing, parent = [[np.zeros(0, np.int64)] for _ in range(3)]
    for blocks, neighbourhood in zip(cosines, neighbourhoods, strict=True):
        row, column = _best(blocks["generated"])
        node.append(neighbourhood.generated[row])
        missing.append(neighbourhood.missing[column])
        parent.append(np.full(len(row), neighbourhood.parent))
    return Matches(np.concatenate(node), np.concatenate(missing), np.concatenate(parent))
