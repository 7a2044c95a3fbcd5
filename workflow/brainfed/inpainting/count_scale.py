"""From the scale of a mask to that of the cut: what a predicted number of hidden neighbours stands for (FedNI eq. 6).

A mask hides a tenth of an institution; a cut into five hides four fifths of everybody. So a count that was learnt on
masks is multiplied by the odds of the cut over the odds of the masks, in edges: hidden ones to visible ones.
"""

import numpy as np

from brainfed.inpainting.inputs import InpaintingInputs
from brainfed.inpainting.institution import Institution
from brainfed.inpainting.masking import draw_mask
from brainfed.inpainting.settings import InpaintingSettings

MASKS = 32


def elsewhere(inputs: InpaintingInputs, institution: Institution) -> int:
    """Subjects of the other institutions that may be learnt from."""
    return int(inputs.fitted.sum()) - len(institution.members)


def count_scale(inputs: InpaintingInputs, institution: Institution, settings: InpaintingSettings) -> float:
    """By what a predicted count is multiplied; 1 where nobody was cut away, and where no mask hides an edge.

    Under the scope `global_cut` with institutions drawn at random, a subject with one neighbour in an institution of n
    of N subjects has (N - n) / (n - 1) elsewhere. The masks' own odds are those of `MASKS` fresh ones, in which nothing
    is learnt: leaves have fewer neighbours than nodes drawn at random.
    """
    own = len(institution.members)
    if settings.count == "printed" or inputs.graph_settings.scope != "global_cut" or own < 2:
        return 1.0
    hidden = visible = 0
    for number in range(MASKS):
        random = inputs.streams.numpy("count-scale", inputs.part, institution.number, number)
        mask = draw_mask(institution.edges, int(random.integers(own)), random, settings)
        is_left = np.ones(own, dtype=np.bool_)
        is_left[mask.hidden] = False
        row = np.repeat(np.arange(own), np.diff(institution.edges.indptr))
        seen = is_left[row]
        met = is_left[institution.edges.indices]
        hidden += int((seen & ~met).sum())
        visible += int((seen & met).sum())
    if hidden == 0 or visible == 0:
        return 1.0
    return (elsewhere(inputs, institution) / (own - 1)) / (hidden / visible)
