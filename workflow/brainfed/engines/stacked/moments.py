"""Moments for an institution that trains nothing in a fold: the mean of the others', from sums over institutions."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from brainfed.federation.ledger import Ledger
from brainfed.federation.link import Arrays
from brainfed.federation.sharing import record_downloads, record_uploads
from brainfed.samples.inputs import MethodInputs

Float64 = NDArray[np.float64]
MEAN, SD, CONSTANT, HELPING = "feature-mean", "feature-sd", "constant-features", "helping-institutions"
MOMENT_BYTES = 8
"""A number of a sum, float64."""


def mean_moments(means: Float64, sds: Float64, total: Callable[[Arrays], Arrays]) -> tuple[Float64, Float64]:
    """Means and deviations (F, d), each the mean over all institutions that train in the fold.

    A deviation is infinite if the column is constant in one of them.

    Args:
        means: (M, F, d) of the institutions here; NaN of one that trains nothing in the fold.
        sds: the same; infinite of a constant column.
        total: sums (F, ...) of the institutions here -> of all.
    """
    trains, constant = ~np.isnan(means[:, :, 0]), np.isinf(sds)
    found = total(
        {
            MEAN: np.where(trains[:, :, None], means, 0.0).sum(axis=0),
            SD: np.where(trains[:, :, None] & ~constant, sds, 0.0).sum(axis=0),
            CONSTANT: constant.sum(axis=0).astype(np.float64),
            HELPING: trains.sum(axis=0).astype(np.float64),
        }
    )
    helping = found[HELPING][:, None]
    return found[MEAN] / helping, np.where(found[CONSTANT] > 0, np.inf, found[SD] / helping)


def record_moments(inputs: MethodInputs, fold: int, ledger: Ledger, sizes: dict[int, int]) -> None:
    """Record the sums of `mean_moments` in one fold: all that train send theirs, all receive the total.

    Args:
        inputs: of the repeat.
        fold: the fold.
        ledger: takes the rows.
        sizes: institution -> number of subjects.
    """
    vector = ((inputs.features[0].shape[1],), MOMENT_BYTES)
    content = {MEAN: vector, SD: vector, CONSTANT: vector, HELPING: ((), MOMENT_BYTES)}
    unseen = inputs.unseen[:, fold]
    record_uploads(ledger, {code: size for code, size in sizes.items() if not unseen[code]}, content)
    record_downloads(ledger, sizes, content)
