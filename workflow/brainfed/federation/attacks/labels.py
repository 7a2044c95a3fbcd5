"""An attack at home: training labels in reverse order."""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


def flipped_labels(labels: IntArray, institution: IntArray, attacked: Collection[int], classes: int) -> IntArray:
    """(F, n) labels, c -> C - 1 - c for the subjects of attacked institutions; of three classes the middle one stays.

    Args:
        labels: (F, n) from 0 to C - 1; negative ones are hidden, and stay.
        institution: (n,) code of each subject's institution.
        attacked: codes.
        classes: their number C.
    """
    turned = (labels >= 0) & np.isin(institution, list(attacked))
    return np.where(turned, classes - 1 - labels, labels)
