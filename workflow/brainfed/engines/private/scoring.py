"""Scores of subjects by a network, in blocks; a subject's score is the mean over its windows."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines.private.cohort import PrivateCohort
from brainfed.models.classifier import class_probabilities


@torch.no_grad()
def probabilities(
    module: torch.nn.Module, cohort: PrivateCohort, part: tuple[int, int], samples: Tensor
) -> NDArray[np.float64]:
    """(b, C) class probabilities.

    Args:
        module: the network.
        cohort: the institutions.
        part: institution and place of the fold.
        samples: (b,) positions of the subjects.
    """
    module.eval()
    like = next(module.parameters())
    found = [np.zeros((0, cohort.classes))]
    for block in cohort.blocks(samples):
        rows = cohort.rows(*part, block, None, like)
        found.append(rows.of_subjects(class_probabilities(module(*rows.arguments))).cpu().numpy())
    return np.concatenate(found)
