"""Real numbers as integers modulo 2^64, whose sum is the same in any order."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from brainfed.runtime.errors import UserError

BITS: Final = 50
"""A bound is 2^50 steps: a number is off by at most 2^-51 of its bound, and 2^12 sites fit in 63 bits and a sign."""
MOST_SITES: Final = 2**12


def encode(values: NDArray[Any], bound: float, name: str) -> NDArray[np.uint64]:
    """Steps of `bound` / 2^50, negative ones as their complement.

    Args:
        values: (...), real numbers.
        bound: the largest magnitude that they can have.
        name: of the tensor, for the error.

    Raises:
        UserError: a value is not finite or beyond the bound.
    """
    real = np.asarray(values, dtype=np.float64)
    if real.size and not np.all(np.abs(real) <= bound):
        found = float(np.max(np.abs(real)))
        raise UserError(
            f"{name}: expected values of at most {bound:g} for a secure sum, found {found:g}; raise the bound"
        )
    return np.rint(real * (2.0**BITS / bound)).astype(np.int64).view(np.uint64)


def decode(steps: NDArray[np.uint64], bound: float) -> NDArray[np.float64]:
    """The numbers, float64 (...), of which `steps` are the sum of `encode`."""
    return steps.view(np.int64).astype(np.float64) * (bound / 2.0**BITS)
