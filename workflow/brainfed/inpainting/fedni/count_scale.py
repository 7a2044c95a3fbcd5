"""From the scale of a mask to that of the cut: what a predicted number of hidden neighbours stands for (FedNI eq. 6).

A mask hides a tenth of an institution; a cut into five hides four fifths of everybody. So a count that was learnt on
masks is multiplied by the odds of the cut over the odds of the masks, in edges: hidden ones to visible ones.
"""

import logging

import numpy as np
from numpy.typing import NDArray

from brainfed.inpainting.fedni.institution import Institution
from brainfed.inpainting.fedni.masking import draw_mask
from brainfed.inpainting.inputs import InpaintingInputs, IntArray
from brainfed.inpainting.settings import InpaintingSettings

logger = logging.getLogger(__name__)

MASKS = 32


def elsewhere(inputs: InpaintingInputs, institution: int) -> int:
    """Subjects of the other institutions that may be learnt from."""
    return int(inputs.fitted.sum()) - len(inputs.members(institution))


def hidden_and_visible(row: IntArray, column: IntArray, is_left: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(2,) of the edges (row, column) that reach a node which is left (n,): those from hidden nodes, and the others."""
    inside = is_left[row] & (row != column)
    return np.array([(inside & ~is_left[column]).sum(), (inside & is_left[column]).sum()])


def scale_of(inputs: InpaintingInputs, institution: int, edges: NDArray[np.int64]) -> float:
    """By what a count is multiplied that was learnt where so many `edges` (2,) were hidden and visible.

    With institutions drawn at random, a subject with one neighbour in an institution of n of N subjects has
    (N - n) / (n - 1) elsewhere. 1 where nobody was cut away (any scope but `global_cut`), and where the masks hid no
    edge or left none.
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
    return (elsewhere(inputs, institution) / (own - 1)) / (int(edges[0]) / int(edges[1]))


def warn_of_sites(inputs: InpaintingInputs, count: str) -> None:
    """One line in the log where the scale is for institutions at random and these are sites or groups of sites.

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
    """FedNI's: the odds of its masks are those of `MASKS` fresh ones, in which nothing is learnt.

    They are less than those of nodes hidden at random, for leaves have fewer neighbours.
    """
    if settings.count == "printed":
        return 1.0
    own = len(institution.members)
    row = np.repeat(np.arange(own), np.diff(institution.edges.indptr))
    edges = np.zeros(2, dtype=np.int64)
    for number in range(MASKS):
        random = inputs.streams.numpy("count-scale", inputs.part, institution.number, number)
        mask = draw_mask(institution.edges, int(random.integers(own)), random, settings)
        is_left = np.ones(own, dtype=np.bool_)
        is_left[mask.hidden] = False
        edges += hidden_and_visible(row, institution.edges.indices.astype(np.int64), is_left)
    return scale_of(inputs, institution.number, edges)
