"""Real numbers as integers modulo 2^64, whose sum is the same in any order."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from brainfed.federation.apart.sealed import bound as bound_of
from brainfed.federation.apart.sealed import is_bound
from brainfed.runtime.errors import UserError

BITS: Final = 50
"""A bound is 2^50 steps: a number is off by at most 2^-51 of its bound, and 2^12 sites fit in 63 bits and a sign."""
MOST_SITES: Final = 2**12


def encode(values: NDArray[Any], bound: float, name: str) -> NDArray[np.uint64]:
    """Steps of `bound` / 2^50, negative ones as their complement.

    Args:
        values: (...), real numbers.
        bound: of these values and those of all other sites.
        name: of the tensor, for the error, which names no value.

    Raises:
        UserError: a value is not finite; or the bound is none of `sealed.bound`, or below that of the values.
    """
    real = np.asarray(values, dtype=np.float64)
    own = bound_of(real)
    if own is None:
        raise UserError(
            f"{name}: expected finite numbers for a secure sum, found NaN or infinite ones; look at the site's "
            "features and lower learning_rate."
        )
    if not is_bound(bound) or bound < own:
        raise UserError(
            f"{name}: expected a bound for a secure sum that is a power of 256 and not below this site's, found "
            "another; run the same version of brainfed at the coordinator and at all sites."
        )
    return np.rint(real * (2.0**BITS / bound)).astype(np.int64).view(np.uint64)


def decode(steps: NDArray[np.uint64], bound: float) -> NDArray[np.float64]:
    """The numbers, float64 (...), of which `steps` are the sum of `encode`."""
    return steps.view(np.int64).astype(np.float64) * (bound / 2.0**BITS)
