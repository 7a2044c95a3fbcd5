"""The training history of a generator as a table."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.inpainting.fedni.adversarial_step import LENGTHS, LOSSES

MEASURES = (*LOSSES, *LENGTHS, "hidden_fraction")


def history_of(measures: NDArray[np.float64], institutions: Sequence[str]) -> pd.DataFrame:
    """Columns institution, round (from 1), loss (one of `MEASURES`) and value, from means (rounds, M, measures)."""
    rounds, count, kinds = measures.shape
    number, place, kind = (axis.ravel() for axis in np.indices((rounds, count, kinds)))
    return pd.DataFrame(
        {
            "institution": np.asarray(institutions, dtype=object)[place],
            "round": (number + 1).astype(np.int32),
            "loss": np.asarray(MEASURES, dtype=object)[kind],
            "value": measures.ravel(),
        }
    )
