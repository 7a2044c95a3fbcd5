"""The number of generated nodes of each subject (FedNI Sec. III-C.1, n~_i)."""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray


def allot(
    count: NDArray[np.float64],
    *,
    rounding: Literal["round", "truncate"],
    max_generated: int | None,
    cap: float | None,
    tie_order: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Whole numbers (n,) of generated nodes from predicted numbers (n,) of one institution's subjects.

    Each is rounded or truncated (`round`: halves to the even side) and clipped to 0 ... `max_generated` (None: no
    limit). Where the sum exceeds floor(cap * n), one factor scales it down to that limit: each gets the whole part of
    its share, and the largest remainders one more. Of equal remainders the larger predicted number comes first, of
    equal numbers the smaller `tie_order` (n,), drawn at random: ids are often in the order of the diagnosis.

    Raises:
        ValueError: a count is not finite.
    """
    if not np.isfinite(count).all():
        raise ValueError("predicted numbers of missing neighbours are not finite")
    whole = np.rint(count) if rounding == "round" else np.trunc(count)
    wanted = np.clip(whole, 0, max_generated).astype(np.int64)
    total = int(wanted.sum())
    # Rounding first mends products such as 0.29 * 100 = 28.999...
    limit = total if cap is None else math.floor(round(cap * len(count), 9))
    if total <= limit:
        return wanted
    given, remainder = np.divmod(wanted * limit, total)
    first = np.lexsort((tie_order, -count, -remainder))[: limit - int(given.sum())]
    given[first] += 1
    return np.asarray(given, dtype=np.int64)
