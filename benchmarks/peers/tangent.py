"""Tangent features at one reference: nilearn's `ConnectivityMeasure` and `imaging._tangent`.

The two find different references: nilearn's is the geometric mean of the covariances, ours the exponential of the mean
of their logarithms, which institutions can add up. Their features are therefore compared at nilearn's, which it fits to
the first subjects before the clock starts. Ours also finds the logarithm of every covariance, for references of its
own.
"""

import numpy as np
from nilearn.connectome import ConnectivityMeasure
from sklearn.covariance import LedoitWolf
from tangent_speed import made_up
from threadpoolctl import threadpool_limits

from brainfed.imaging import covariances, tangent_at
from brainfed.imaging.series import standardised
from peers.comparison import Comparison, Result, compared, named, timed

TOLERANCE = 1e-5
"""Ours stores covariances and features as float32."""


def tangent(quick: bool, threads: int) -> Comparison:
    """Tangent features of all subjects from their series."""
    subjects, regions, fitted = (30, 20, 10) if quick else (871, 122, 50)
    series = {name: standardised(values) for name, values in made_up(subjects, regions).items()}
    measure = ConnectivityMeasure(LedoitWolf(store_precision=False), kind="tangent", vectorize=True)
    measure.fit(list(series.values())[:fitted])
    names = [str(region) for region in range(regions)]
    # nilearn has the rows of the lower triangle, which are the columns of the upper one.
    rows, columns = np.triu_indices(regions)
    order = np.lexsort((rows, columns))

    def theirs() -> Result:
        # nilearn divides the diagonal by sqrt(2) where ours multiplies all else by it.
        return np.sqrt(2) * measure.transform(list(series.values()))

    def ours() -> Result:
        # As in a job: subjects side by side, each on one thread.
        with threadpool_limits(1):
            return tangent_at(covariances(series, names, 0.0, {}, threads), measure.whitening_, threads)[:, order]

    shape = f"{subjects} subjects, {regions} regions"
    return compared(
        "tangent features", f"{named('nilearn')} (ConnectivityMeasure)", f"{shape}: features at nilearn's reference",
        timed(theirs), timed(ours), TOLERANCE,
    )  # fmt: skip
