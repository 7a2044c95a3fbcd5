"""Region series of which some training subjects are public (GAHFL, Setting): input of methods whose server has data."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brainfed.samples.labelled_subjects import HIDDEN
from brainfed.samples.series_inputs import IntArray, SeriesInputs


@dataclass(frozen=True, kw_only=True)
class PublicSeriesInputs(SeriesInputs):
    """Region series; in each fold the server may read those of the public training subjects, and their labels.

    Attributes:
        public: (F, n) whether each subject is public in the training of each fold.

    Raises:
        ValueError: as of `SeriesInputs`, the mask has another shape, or a subject that a fold tests, or without a
            label, is public in it.
        UserError: as of `SeriesInputs`.
    """

    public: NDArray[np.bool_]

    def __post_init__(self) -> None:
        """Reject public subjects that do not train."""
        super().__post_init__()
        if self.public.dtype != np.bool_ or self.public.shape != self.labels.shape:
            raise ValueError(
                f"expected public as booleans {self.labels.shape}, found {self.public.dtype} {self.public.shape}"
            )
        leaked = self.public & (self.labels == HIDDEN)
        if leaked.any():
            fold, subject = np.argwhere(leaked)[0].tolist()
            raise ValueError(
                f"expected public subjects among those that train, found {self.subjects[subject]!r} in fold {fold}, "
                "which tests it or which has no label of it"
            )

    def public_training(self, fold: int) -> IntArray:
        """Positions of the public training subjects of `fold`, of all institutions, ascending."""
        return np.flatnonzero(self.public[fold])

    def private_training(self, fold: int, institution: int) -> IntArray:
        """Positions of the training subjects of `fold` that an institution keeps to itself, ascending."""
        return np.flatnonzero(self.training(fold) & ~self.public[fold] & (self.institution == institution))
