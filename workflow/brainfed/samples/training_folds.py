"""The training subjects of a fold, or an error if no institution has one."""

import numpy as np
from numpy.typing import NDArray

from brainfed.runtime.errors import UserError
from brainfed.samples.labelled_subjects import LabelledSubjects


def require_training_subjects(inputs: LabelledSubjects, fold: int) -> NDArray[np.bool_]:
    """(n,) mask of the subjects whose label the method may use in `fold`; none at a real site that is left out in it.

    Raises:
        UserError: there is none, and no other institution may have one.
    """
    training = inputs.training(fold)
    if not (training.any() or inputs.link.apart):
        raise UserError(
            f"Fold {fold}: expected training subjects with a diagnosis, found none; "
            "leave-one-site-out needs at least two sites, other splits at least two folds."
        )
    return training
