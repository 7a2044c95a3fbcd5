"""Agreement of generated nodes in sex and age with their matched true neighbours."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brainfed.inpainting.fidelity.estimate import Estimate, estimate
from brainfed.inpainting.fidelity.features import Matches
from brainfed.inpainting.fusing.fused import FusedGraph
from brainfed.inpainting.inputs import InpaintingInputs

FloatVector = NDArray[np.float64]


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
    sex, generated_sex = _known_codes(inputs.sex), _known_codes(fused.sex)
    gap = inputs.graph_settings.age_gap
    return PhenotypeFidelity(
        sex=_agreement(sex, generated_sex, 0.0, inputs, matches),
        age=_agreement(inputs.age, fused.age, gap, inputs, matches),
    )


def _known_codes(codes: NDArray[np.int64]) -> FloatVector:
    """Codes as numbers, NaN where unknown."""
    return np.where(codes >= 0, codes, np.nan)


def _agreement(
    real: FloatVector, generated: FloatVector, gap: float, inputs: InpaintingInputs, matches: Matches
) -> Agreement:
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


def _agree(first: FloatVector, second: FloatVector, gap: float) -> FloatVector:
    return (np.abs(first - second) <= gap).astype(np.float64)


def _over_parents(values: FloatVector, parent: NDArray[np.int64]) -> Estimate:
    """The mean over parents of the mean of each one's pairs."""
    _, place, pairs = np.unique(parent, return_inverse=True, return_counts=True)
    return estimate(np.bincount(place, weights=values) / pairs)
