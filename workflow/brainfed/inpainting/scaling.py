"""Scale features into the range of a generator's tanh, and back."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brainfed.inpainting.inputs import FloatArray, InpaintingInputs

BOUND = 5.0
"""Standard deviations at the limit of tanh, equal in all institutions: generators are averaged."""


@dataclass(frozen=True)
class Scaling:
    """The generator's value of x in a column is (x - centre) / unit.

    Attributes:
        centre, unit: (d,).
    """

    centre: NDArray[np.float64]
    unit: NDArray[np.float64]

    def apply(self, rows: FloatArray) -> FloatArray:
        """Features (n, d) clipped to -1 ... 1, in the type of `rows`."""
        if not self.changes:
            return rows
        scaled = np.clip((rows - self.centre) / self.unit, -1, 1)
        return scaled.astype(np.float32) if rows.dtype == np.float32 else scaled

    def undo(self, rows: FloatArray) -> NDArray[np.float64]:
        """Scaled features (n, d) in their own units."""
        return np.asarray(rows * self.unit + self.centre, dtype=np.float64)

    @property
    def changes(self) -> bool:
        """Whether scaling changes any feature."""
        return bool(self.centre.any() or (self.unit != 1).any())


def scaling_of(inputs: InpaintingInputs, institution: int) -> Scaling:
    """The institution's scaling, from its own data alone.

    Correlations stay as they are. Other features are z-scored by the institution's training subjects and divided by
    `BOUND`; a constant column becomes 0.
    """
    width = inputs.features.shape[1]
    if inputs.correlations:
        return Scaling(np.zeros(width), np.ones(width))
    rows = inputs.features[inputs.members(institution)].astype(np.float64)
    deviation = rows.std(axis=0)
    return Scaling(rows.mean(axis=0), BOUND * np.where(deviation > 0, deviation, 1.0))
