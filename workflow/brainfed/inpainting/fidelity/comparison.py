"""Inpainting fidelity: generated neighbours against the neighbours that the cut removed.

Under graph.scope `global_cut` the population graph is built over all subjects and its edges between institutions are
cut. Then the true missing neighbours T_i of a subject i are known: the foreign subjects joined to it by cut edges.
FedNI has no such figure. Scores use no diagnosis. As JSON:

    {"generated": int,                  generated nodes
     "parents": int,                    compared parents: with missing and visible neighbours
     "parents_without_missing": int,    parents without cut edges: not compared
     "parents_without_visible": int,    parents with missing but no visible neighbours: not compared
     "count":     {"subjects", "predicted_mean", "true_mean", "generated_mean", "ratio_predicted", "ratio_generated",
                   "predicted": {"pearson", "spearman"}, "visible_degree": {"pearson", "spearman"},
                   "calibration": [{"predicted", "true", "error", "subjects"}, ...]},
     "feature":   {"cosine": COSINE, "centred": COSINE},
     "phenotype": {"sex": AGREEMENT, "age": AGREEMENT},
     "edges":     {"generated": EDGE, "random": EDGE, "visible_neighbours": EDGE, "pairs", "predicted", "true"}}

    COSINE    = {"generated": SCORE, "baselines": {"mean_neighbour": SCORE, "institution_mean": SCORE, "parent": SCORE},
                 "gains": {the same names: SCORE}}
    SCORE     = {"to_all": ESTIMATE, "matched": ESTIMATE}
    AGREEMENT = {"generated": ESTIMATE, "parent": ESTIMATE, "chance": ESTIMATE, "pairs"}
    EDGE      = {"precision", "recall", "f1"}
    ESTIMATE  = {"mean", "error", "parents"}

Undefined values are null: a correlation with a constant, an empty mean, an error of one value.
"""

from dataclasses import asdict, dataclass
from typing import Any

from brainfed.graphs.neighbours.search import Edges
from brainfed.inpainting.fidelity.count import CountFidelity, compare_counts
from brainfed.inpainting.fidelity.edges import EdgeFidelity, compare_edges
from brainfed.inpainting.fidelity.features import FeatureFidelity, compare_features
from brainfed.inpainting.fidelity.neighbourhoods import neighbourhoods
from brainfed.inpainting.fidelity.phenotype import PhenotypeFidelity, compare_phenotypes
from brainfed.inpainting.fusing.fused import FusedGraph
from brainfed.inpainting.inputs import InpaintingInputs


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

    def to_json(self) -> dict[str, Any]:
        """Nested builtins as in the module's docstring; None for undefined values, never NaN."""
        return asdict(self)


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
