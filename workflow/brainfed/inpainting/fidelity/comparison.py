"""Inpainting fidelity: generated neighbours against those that were really taken away.

Under graph.scope `global_cut` the population graph is built over everybody and its edges between institutions are cut.
The true missing neighbours T_i of a subject i are then known: the subjects of other institutions that cut edges join to
it. FedNI has no such figure. No diagnosis enters a score. As JSON:

    {"generated": int,                  generated nodes
     "parents": int,                    parents that are compared: with missing and with visible neighbours
     "parents_without_missing": int,    parents that the cut took nothing from: not compared
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

What does not exist is null: a correlation with a constant, a mean over nothing, an error of one value.
"""

from dataclasses import asdict, dataclass
from typing import Any

from brainfed.graphs.neighbours.search import Edges
from brainfed.inpainting.fidelity.count import CountFidelity, compare_counts
from brainfed.inpainting.fidelity.edges import EdgeFidelity, compare_edges
from brainfed.inpainting.fidelity.families import families
from brainfed.inpainting.fidelity.features import FeatureFidelity, compare_features
from brainfed.inpainting.fidelity.phenotype import PhenotypeFidelity, compare_phenotypes
from brainfed.inpainting.fusing.fused import FusedGraph
from brainfed.inpainting.inputs import InpaintingInputs


@dataclass(frozen=True)
class Fidelity:
    """How near one fused graph comes to what the cut removed; the classes of the fields hold formulas and baselines.

    Attributes:
        generated: number of generated nodes.
        parents: parents whose nodes are compared in `feature`, `phenotype` and `edges`: they have missing neighbours,
            and visible ones, without which the baselines are not defined.
        parents_without_missing: parents that the cut took nothing from; their nodes stand for nobody.
        parents_without_visible: parents with missing neighbours and no visible ones.
        count: predicted against true number of missing neighbours, over all fitted subjects.
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
        """Nested builtins as in the module's docstring; None where a value does not exist, never NaN."""
        return asdict(self)


def fidelity(inputs: InpaintingInputs, fused: FusedGraph, cut: Edges) -> Fidelity:
    """Score generated nodes against the subjects that the cut hid from each institution.

    Args:
        inputs: what the generator was trained on; its graph has scope `global_cut`.
        fused: real and generated nodes.
        cut: the removed edges over the n subjects, as `PopulationGraph.cut` holds them.
    """
    kin = families(inputs, fused, cut)
    bereft = [family for family in kin if len(family.missing)]
    compared = [family for family in bereft if len(family.visible)]
    feature, matches = compare_features(inputs, fused, compared)
    return Fidelity(
        generated=len(fused.parent),
        parents=len(compared),
        parents_without_missing=len(kin) - len(bereft),
        parents_without_visible=len(bereft) - len(compared),
        count=compare_counts(inputs, fused, cut),
        feature=feature,
        phenotype=compare_phenotypes(inputs, fused, matches),
        edges=compare_edges(inputs, fused, cut, matches),
    )
