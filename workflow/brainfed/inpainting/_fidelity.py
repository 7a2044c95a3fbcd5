"""Generated neighbours against the true ones that the cut removed: their number, features, phenotypes and edges."""

from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.sparse import csr_array

from brainfed.graphs import Edges
from brainfed.inpainting._inputs import FusedGraph, InpaintingInputs
from brainfed.inpainting._matching import (
    Estimate,
    FeatureFidelity,
    Matches,
    compare_features,
    estimate,
    neighbourhoods,
    ratio,
)
from brainfed.runtime import Float64, IntArray


@dataclass(frozen=True)
class Agreement:
    """Share of matched pairs (u, j) with agreeing phenotypes, a mean over parents.

    Only pairs with a known phenotype of u, of j and of the parent i count. Edges follow agreement in these phenotypes,
    so the parent itself is a strong predictor.

    Attributes:
        generated: agreement of the generated node u with the true neighbour j it is matched to.
        parent: the baseline, agreement of the parent i with j.
        chance: expected agreement of a fitted subject of i's institution, drawn at random, with j.
        pairs: number of pairs that count.
    """

    generated: Estimate
    parent: Estimate
    chance: Estimate
    pairs: int


@dataclass(frozen=True)
class PhenotypeFidelity:
    """Agreement in `sex`: equal; in `age`: a difference of at most the graph's age_gap."""

    sex: Agreement
    age: Agreement


def compare_phenotypes(inputs: InpaintingInputs, fused: FusedGraph, matches: Matches) -> PhenotypeFidelity:
    """Score the phenotypes of matched generated nodes."""
    sex, generated_sex = (np.where(codes >= 0, codes, np.nan) for codes in (inputs.sex, fused.sex))
    return PhenotypeFidelity(
        sex=_agreement(sex, generated_sex, 0.0, inputs, matches),
        age=_agreement(inputs.age, fused.age, inputs.graph_settings.age_gap, inputs, matches),
    )


def _agreement(real: Float64, generated: Float64, gap: float, inputs: InpaintingInputs, matches: Matches) -> Agreement:
    """Agreement in one phenotype, (n,) of subjects and (g,) of generated nodes, NaN unknown."""
    true, predicted, own = real[matches.missing], generated[matches.node], real[matches.parent]
    known = np.isfinite(true) & np.isfinite(predicted) & np.isfinite(own)
    true, predicted, own, parent = true[known], predicted[known], own[known], matches.parent[known]
    chance = np.zeros(len(true))
    home = inputs.institution[parent]
    for institution in np.unique(home).tolist():
        members = real[inputs.members(institution)]
        members = members[np.isfinite(members)]
        there = home == institution
        chance[there] = _agree(members[:, None], true[there], gap).mean(axis=0)
    return Agreement(
        generated=_over_parents(_agree(predicted, true, gap), parent),
        parent=_over_parents(_agree(own, true, gap), parent),
        chance=_over_parents(chance, parent),
        pairs=len(true),
    )


def _agree(first: Float64, second: Float64, gap: float) -> Float64:
    return (np.abs(first - second) <= gap).astype(np.float64)


def _over_parents(values: Float64, parent: IntArray) -> Estimate:
    """The mean over parents of the mean of each one's pairs."""
    _, place, pairs = np.unique(parent, return_inverse=True, return_counts=True)
    return estimate(np.bincount(place, weights=values) / pairs)


BINS = 10


@dataclass(frozen=True)
class Correlation:
    """Correlation of a predictor with the true number; None where one is constant, or for fewer than two subjects."""

    pearson: float | None
    spearman: float | None


@dataclass(frozen=True)
class CalibrationBin:
    """Subjects with predictions in one tenth of all predictions; equal predictions share a bin.

    Attributes:
        predicted: mean predicted number.
        true: mean true number.
        error: standard error of `true` over the bin's subjects; None for a single one.
        subjects: number of subjects.
    """

    predicted: float
    true: float
    error: float | None
    subjects: int


@dataclass(frozen=True)
class CountFidelity:
    """Predicted number c_i (before rounding and cap) against the true number t_i = |T_i|, over fitted subjects.

    Under `count: printed` c_i stays on the scale of masks that hide 10-15 % of an institution, whereas the cut removes
    about (M - 1) / M of the neighbours: expect a ratio far below 1. Correlation does not depend on it.

    Attributes:
        subjects: number of subjects.
        predicted_mean: mean of c_i; None without subjects.
        true_mean: mean of t_i; None without subjects.
        generated_mean: generated nodes a subject, after rounding and cap; None without subjects.
        ratio_predicted: sum c_i / sum t_i; None if nothing is missing.
        ratio_generated: generated nodes / sum t_i; None if nothing is missing.
        predicted: correlation of c_i with t_i.
        visible_degree: the baseline, correlation of the number of visible neighbours with t_i.
        calibration: at most ten bins by deciles of c_i, ascending; calibrated where `true` = `predicted`.
    """

    subjects: int
    predicted_mean: float | None
    true_mean: float | None
    generated_mean: float | None
    ratio_predicted: float | None
    ratio_generated: float | None
    predicted: Correlation
    visible_degree: Correlation
    calibration: tuple[CalibrationBin, ...]


def compare_counts(inputs: InpaintingInputs, fused: FusedGraph, cut: Edges) -> CountFidelity:
    """Score the predicted numbers of missing neighbours."""
    fitted, nodes = inputs.fitted, len(inputs.fitted)
    predicted = fused.count[fitted]
    true = np.bincount(cut.row, minlength=nodes)[fitted].astype(np.float64)
    others = inputs.graph.row != inputs.graph.column
    degree = np.bincount(inputs.graph.row[others], minlength=nodes)[fitted].astype(np.float64)
    generated = len(fused.parent)
    return CountFidelity(
        subjects=len(predicted),
        predicted_mean=estimate(predicted).mean,
        true_mean=estimate(true).mean,
        generated_mean=ratio(generated, len(predicted)),
        ratio_predicted=ratio(predicted.sum(), true.sum()),
        ratio_generated=ratio(generated, true.sum()),
        predicted=_correlation(predicted, true),
        visible_degree=_correlation(degree, true),
        calibration=_calibration(predicted, true),
    )


def _correlation(first: Float64, second: Float64) -> Correlation:
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return Correlation(None, None)
    return Correlation(float(stats.pearsonr(first, second).statistic), float(stats.spearmanr(first, second).statistic))


def _calibration(predicted: Float64, true: Float64) -> tuple[CalibrationBin, ...]:
    if not len(predicted):
        return ()
    edges = np.unique(np.quantile(predicted, np.arange(1, BINS) / BINS))
    place = np.searchsorted(edges, predicted, side="left")
    bins = [(predicted[place == index], true[place == index]) for index in np.unique(place)]
    return tuple(
        CalibrationBin(float(own.mean()), float(counts.mean()), estimate(counts).error, len(own))
        for own, counts in bins
    )


# Recovered edges: generated nodes joined to the neighbours of their true counterparts (FedNI Sec. III-B.2).

Joined = csr_array  # (nodes, subjects) of 0 and 1


@dataclass(frozen=True)
class EdgeScore:
    """Summed over matched pairs, then divided (micro average); None where the denominator is 0.

    With P_u the predicted and E_j the true neighbours of a pair: precision = sum |P_u & E_j| / sum |P_u|,
    recall = sum |P_u & E_j| / sum |E_j|, f1 = 2 sum |P_u & E_j| / (sum |P_u| + sum |E_j|).
    """

    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(frozen=True)
class EdgeFidelity:
    """Recovered edges of the generated nodes u that are matched to a true missing neighbour j of their parent i.

    P_u are the subjects joined to u in the fused graph, E_j those joined to j by cut edges, both without i and limited
    to fitted subjects of its institution. Weights do not count.

    Attributes:
        generated: the fused graph's edges.
        random: the expected score of |P_u| subjects drawn at random from the institution without i.
        visible_neighbours: i's visible neighbours in place of P_u.
        pairs: matched pairs.
        predicted: sum |P_u|.
        true: sum |E_j|.
    """

    generated: EdgeScore
    random: EdgeScore
    visible_neighbours: EdgeScore
    pairs: int
    predicted: int
    true: int


def compare_edges(inputs: InpaintingInputs, fused: FusedGraph, cut: Edges, matches: Matches) -> EdgeFidelity:
    """Score the edges of matched generated nodes."""
    count, parent = len(inputs.institution), matches.parent
    joined = _joined(
        np.concatenate([fused.row, fused.column]), np.concatenate([fused.column, fused.row]), count + len(fused.parent)
    )
    predicted = _candidates(joined[count + matches.node], inputs, parent)
    true = _candidates(_joined(cut.column, cut.row, count)[matches.missing], inputs, parent)
    visible = _candidates(_joined(inputs.graph.row, inputs.graph.column, count)[parent], inputs, parent)
    return EdgeFidelity(
        generated=_score(_common(predicted, true), predicted, true),
        random=_score(_expected(predicted, true, inputs, parent), predicted, true),
        visible_neighbours=_score(_common(visible, true), visible, true),
        pairs=len(parent),
        predicted=predicted.nnz,
        true=true.nnz,
    )


def _joined(row: IntArray, column: IntArray, nodes: int) -> Joined:
    """Square matrix of 0 and 1, 1 for each edge."""
    matrix = csr_array((np.ones(len(row), np.int64), (row, column)), shape=(nodes, nodes))
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def _candidates(joined: Joined, inputs: InpaintingInputs, parent: IntArray) -> Joined:
    """Of the nodes joined in each row (pairs), the fitted subjects of the parent's institution without the parent."""
    pair, node = joined.nonzero()
    subject = node < len(inputs.institution)
    pair, node = pair[subject], node[subject]
    home = inputs.institution[parent]
    kept = inputs.fitted[node] & (inputs.institution[node] == home[pair]) & (node != parent[pair])
    shape = len(parent), len(inputs.institution)
    return csr_array((np.ones(kept.sum(), np.int64), (pair[kept], node[kept])), shape=shape)


def _common(first: Joined, second: Joined) -> float:
    return float(first.multiply(second).sum())


def _expected(predicted: Joined, true: Joined, inputs: InpaintingInputs, parent: IntArray) -> float:
    """Expected common edges of predictions drawn at random without replacement: |P| |E| / candidates."""
    members = np.bincount(inputs.institution[inputs.fitted], minlength=len(inputs.institutions))
    candidates = np.maximum(members[inputs.institution[parent]] - 1, 1)
    return float((predicted.sum(axis=1) * true.sum(axis=1) / candidates).sum())


def _score(common: float, predicted: Joined, true: Joined) -> EdgeScore:
    return EdgeScore(
        precision=ratio(common, predicted.nnz),
        recall=ratio(common, true.nnz),
        f1=ratio(2 * common, predicted.nnz + true.nnz),
    )


# Inpainting fidelity: generated neighbours against the neighbours that the cut removed.
#
# Under graph.scope `global_cut` the population graph is built over all subjects and its edges between institutions are
# cut. Then the true missing neighbours T_i of a subject i are known: the foreign subjects joined to it by cut edges.
# FedNI has no such figure. Scores use no diagnosis. In the file, a `Fidelity` as JSON, undefined values are null: a
# correlation with a constant, an empty mean, an error of one value.


@dataclass(frozen=True)
class Fidelity:
    """Fidelity of one fused graph; the classes of the fields document formulas and baselines.

    Attributes:
        generated: number of generated nodes.
        parents: parents compared in `feature`, `phenotype` and `edges`: they have missing neighbours, and visible ones
            for the baselines.
        parents_without_missing: parents without cut edges; their nodes have no true counterpart.
        parents_without_visible: parents with missing neighbours and no visible ones.
        count: predicted and true numbers of missing neighbours, over fitted subjects.
        feature: cosine of generated with true features.
        phenotype: agreement in sex and age.
        edges: recovered edges.
    """

    generated: int
    parents: int
    parents_without_missing: int
    parents_without_visible: int
    count: CountFidelity
    feature: FeatureFidelity
    phenotype: PhenotypeFidelity
    edges: EdgeFidelity


def fidelity(inputs: InpaintingInputs, fused: FusedGraph, cut: Edges) -> Fidelity:
    """Score generated nodes against true missing neighbours.

    Args:
        inputs: what the generator was trained on; its graph has scope `global_cut`.
        fused: real and generated nodes.
        cut: the removed edges over the n subjects, as `PopulationGraph.cut` holds them.
    """
    every = neighbourhoods(inputs, fused, cut)
    with_missing = [neighbourhood for neighbourhood in every if len(neighbourhood.missing)]
    compared = [neighbourhood for neighbourhood in with_missing if len(neighbourhood.visible)]
    feature, matches = compare_features(inputs, fused, compared)
    return Fidelity(
        generated=len(fused.parent),
        parents=len(compared),
        parents_without_missing=len(every) - len(with_missing),
        parents_without_visible=len(with_missing) - len(compared),
        count=compare_counts(inputs, fused, cut),
        feature=feature,
        phenotype=compare_phenotypes(inputs, fused, matches),
        edges=compare_edges(inputs, fused, cut, matches),
    )
