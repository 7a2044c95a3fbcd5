"""Rows of norm 1, each made from one subject alone.

A subject's gradient is a residual times its row, so a row of norm 1 bounds it without any fit to other subjects.
"""

from typing import Literal

import numpy as np

from brainfed.runtime.errors import UserError
from brainfed.samples.inputs import FloatArray, MethodInputs
from brainfed.samples.standardise import centred_subjects

MARGIN = 1e-6
"""Relative; rounding to float32 then leaves no norm above 1."""


def unit_rows(features: FloatArray, centre: Literal["none", "subject"]) -> FloatArray:
    """Rows (n, d) of norm 1, by `MARGIN` less; a row without variation is zero under `subject`.

    Args:
        features: (n, d).
        centre: `subject` subtracts the mean of each row first.
    """
    rows = centred_subjects(features) if centre == "subject" else features
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64, casting="unsafe"))
    constant = np.ptp(rows, axis=1) == 0 if centre == "subject" else norms == 0
    found: FloatArray = rows / np.where(constant, np.inf, norms * (1 + MARGIN))[:, None].astype(rows.dtype)
    return found


def own_rows(inputs: MethodInputs, centre: Literal["none", "subject"]) -> FloatArray:
    """Unit rows (n, d) that all folds share.

    Raises:
        UserError: the features of a fold are fitted on its training subjects.
    """
    if len(inputs.features) > 1:
        raise UserError(
            f"features: expected the same for all folds, as a fit to training subjects has no privacy, found "
            f"{len(inputs.features)} fits; leave out harmonise, selection and a fitted reference."
        )
    return unit_rows(inputs.features[0], centre)
