"""Scale predicted numbers of missing neighbours from masks to the cut.

A mask hides a tenth of an institution; a cut into five hides four fifths of all subjects. So a count learnt on masks is
multiplied by the odds of the cut over the odds of the masks. Odds are hidden edges over visible ones.
"""

import logging

import numpy as np
from numpy.typing import NDArray

from brainfed.federation.ledger import Ledger
from brainfed.federation.sharing import add_up
from brainfed.inpainting.fedni.institution import Institution
from brainfed.inpainting.fedni.masking import draw_mask
from brainfed.inpainting.fedni.shared_tensors import SIZE_TENSORS
from brainfed.inpainting.inputs import InpaintingInputs, IntArray
from brainfed.inpainting.settings import InpaintingSettings

logger = logging.getLogger(__name__)

MASKS = 32


def foreign_subjects(inputs: InpaintingInputs, institution: int) -> int:
    """Number of training subjects of the other institutions."""
    ledger, own = Ledger(SIZE_TENSORS, stage="inpainting"), {"training-subjects": inputs.fitted.sum()}
    everybody = add_up(inputs.link, ledger, len(inputs.subjects), own)["training-subjects"]
    return int(everybody) - len(inputs.members(institution))


def hidden_and_visible(row: IntArray, column: IntArray, is_visible: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(2,) numbers of edges (row, column) that reach a visible node (n,): from hidden nodes, and from visible ones."""
    inside = is_visible[row] & (row != column)
    return np.array([(inside & ~is_visible[column]).sum(), (inside & is_visible[column]).sum()])


def odds_ratio(inputs: InpaintingInputs, institution: int, edges: NDArray[np.int64]) -> float:
    """Odds of the cut over those of masks with so many hidden and visible `edges` (2,).

    With institutions drawn at random, a subject has (N - n) / (n - 1) foreign neighbours for one in its institution of
    n of N subjects. 1 without a cut (any scope but `global_cut`), and where masks hide no edge or leave none.
    """
    own = len(inputs.members(institution))
    if inputs.graph_settings.scope != "global_cut":
        return 1.0
    if own < 2 or not edges.all():
        logger.warning(
            "institution %r: its masks %s no edge, so its predicted numbers of missing neighbours are not scaled from "
            "the masks to the cut and are too low; institutions with more subjects, or a larger graph.k, have more "
            "edges",
            inputs.institutions[institution],
            "leave" if edges[0] else "hide",
        )
        return 1.0
    return (foreign_subjects(inputs, institution) / (own - 1)) / (int(edges[0]) / int(edges[1]))


def warn_of_sites(inputs: InpaintingInputs, count: str) -> None:
    """Warn that the scale assumes random institutions; call it where institutions are sites or groups of sites.

    Args:
        inputs: of the inpainting job.
        count: the setting of the inpainter.
    """
    if inputs.graph_settings.scope == "global_cut" and count == "calibrated":
        logger.warning(
            "the predicted numbers of missing neighbours are scaled as if institutions were drawn at random; these are "
            "sites or groups of sites, whose subjects often have their neighbours inside, so the numbers tend to be "
            "too high"
        )


def count_scale(inputs: InpaintingInputs, institution: Institution, settings: InpaintingSettings) -> float:
    """The odds ratio of one FedNI institution, from `MASKS` fresh masks.

    Its masks have smaller odds than nodes hidden at random, for leaves have fewer neighbours.
    """
    if settings.count == "printed":
        return 1.0
    own = len(institution.members)
    row = np.repeat(np.arange(own), np.diff(institution.edges.indptr))
    edges = np.zeros(2, dtype=np.int64)
    for number in range(MASKS):
        random = inputs.streams.numpy("count-scale", inputs.part, institution.number, number)
        mask = draw_mask(institution.edges, int(random.integers(own)), random, settings)
        is_visible = np.ones(own, dtype=np.bool_)
        is_visible[mask.hidden] = False
        edges += hidden_and_visible(row, institution.edges.indices.astype(np.int64), is_visible)
    return odds_ratio(inputs, institution.number, edges)
