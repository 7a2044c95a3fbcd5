"""Notice files of region series that have a row a region, and matrices of correlations in place of series.

Signals are smooth in time: neighbouring volumes resemble each other (a lag-1 autocorrelation of .46 to .89 in 400
subjects of ABIDE), neighbouring regions of an atlas hardly do (-.06 to .02).
"""

import numpy as np
from numpy.typing import NDArray

from brainfed.runtime.errors import UserError

FEWEST = 20
"""Fewest rows and columns that are compared."""
SMOOTH = 0.3
"""Least mean autocorrelation along the rows of a table that has a row a region."""
ROUGH = 0.1
"""Largest mean autocorrelation along its columns."""


def refuse_other_orientation(where: str, exact: NDArray[np.float64], transposed: bool | None) -> None:
    """Refuse a (time, R) array that seems to have a row a region, or that holds correlations.

    Args:
        where: subject and file, for messages.
        exact: values, NaN in regions that are missing throughout.
        transposed: the cohort's setting; the question is open where it is None.

    Raises:
        UserError: rows are smooth and columns are not, or the array is a symmetric matrix.
    """
    volumes, regions = exact.shape
    if volumes == regions > 2 and np.ptp(exact) > 0 and np.allclose(exact, exact.T, rtol=1e-6, atol=0):
        raise UserError(
            f"{where}: expected a row a volume, found a symmetric matrix, as correlations are; name the file of the "
            "series."
        )
    seen = exact[:, ~np.isnan(exact).any(axis=0)]
    if transposed is not None or min(seen.shape) < FEWEST:
        return
    along_rows = autocorrelation(seen.T)
    if along_rows >= SMOOTH and autocorrelation(seen) <= ROUGH:
        raise UserError(
            f"{where}: expected a row a volume, found rows that are smooth (autocorrelation {along_rows:.2f}) and "
            "columns that are not, as if each row were a region; set `transposed: true` for the cohort if it is so, "
            "`transposed: false` if rows are volumes."
        )


def autocorrelation(series: NDArray[np.float64]) -> float:
    """Mean over the columns that vary of the autocorrelation with the row below; 0 if none varies."""
    centred = series - series.mean(axis=0)
    power = (centred**2).sum(axis=0)
    varying = power > 0
    if not varying.any():
        return 0.0
    return float(((centred[1:] * centred[:-1]).sum(axis=0)[varying] / power[varying]).mean())
