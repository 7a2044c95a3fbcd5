"""The training subjects of a fold, or an error if there are none."""

import numpy as np
from numpy.typing import NDArray

from brainfed.runtime.errors import UserError
from brainfed.samples.labelled_subjects import LabelledSubjects


def require_training_subjects(inputs: LabelledSubjects, fold: int) -> NDArray[np.bool_]:
    """(n,) mask of the subjects whose label the method may use in `fold`.

    Raises:
        UserError: there is none.
    """
    training = inputs.training(fold)
    if not training.any():
        raise UserError(
            f"Fold {fold}: expected training subjects with a diagnosis, found none; "
            "leave-one-site-out needs at least two sites, other splits at least two folds."
        )
    return training
