"""Features inside the reach of a generator's tanh, and back in their own units (FedNI spec section 1)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brainfed.inpainting.inputs import FloatArray, InpaintingInputs

BOUND = 5.0
"""Standard deviations that tanh's limit stands for, the same in every institution: generators are averaged."""


@dataclass(frozen=True)
class Scaling:
    """A column's value x is (x - centre) / unit to the generator.

    Attributes:
        centre, unit: (d,).
    """

    centre: NDArray[np.float64]
    unit: NDArray[np.float64]

    def apply(self, rows: FloatArray) -> FloatArray:
        """Features (n, d) inside -1 ... 1, in the type of `rows`; what lies beyond is drawn to the limit."""
        if not self.changes:
            return rows
        scaled = np.clip((rows - self.centre) / self.unit, -1, 1)
        return scaled.astype(np.float32) if rows.dtype == np.float32 else scaled

    def undo(self, rows: FloatArray) -> NDArray[np.float64]:
        """Scaled features (n, d) in their own units."""
        return np.asarray(rows * self.unit + self.centre, dtype=np.float64)

    @property
    def changes(self) -> bool:
        """Whether scaled features are others than those in their own units."""
        return bool(self.centre.any() or (self.unit != 1).any())


def scaling_of(inputs: InpaintingInputs, institution: int) -> Scaling:
    """How the institution scales its features: by nothing of the others.

    Correlations stay as they are. All else is z-scored by the institution's subjects that may be learnt from and
    divided by `BOUND`; a column of equal values is 0.
    """
    width = inputs.features.shape[1]
    if inputs.correlations:
        return Scaling(np.zeros(width), np.ones(width))
    rows = inputs.features[inputs.members(institution)].astype(np.float64)
    deviation = rows.std(axis=0)
    return Scaling(rows.mean(axis=0), BOUND * np.where(deviation > 0, deviation, 1.0))
