"""Epsilon of a training with clipped and noised gradients, by Opacus' accountants.

A step includes each subject with probability q (Poisson sampling) and releases the sum of clipped gradients with
Gaussian noise; steps compose, within a training and over all trainings of a study. The PRV accountant (Gopi et al.
2021) computes the composition numerically and returns an upper bound. Renyi accounting gives an epsilon 7 to 9 % larger
for trainings between 3 and 60, and more below.
"""

import warnings
from functools import cache
from math import inf

import numpy as np

EPSILON_ERROR, ERROR_SHARE = 0.01, 0.002
"""The bound is above the true epsilon by at most twice the larger of 0.01 and 0.2 % of its Renyi bound: the accountant
adds this error, and its grid, whose size falls with it, rounds."""

SMALL = 0.2
SMALL_ERROR = 0.0005
"""The error where epsilon is below `SMALL`."""

WIDEST = 100.0
"""Epsilon above which Renyi accounting gives the result, at least 5 % larger: PRV's grid grows with epsilon."""


Steps = tuple[float, float, int]
"""Of one kind: the noise multiplier (standard deviation over clipping norm), the probability q in (0, 1] that a step
includes a subject, and the number of steps."""


def epsilon_spent(multiplier: float, sampling_rate: float, steps: int, delta: float) -> float:
    """Upper bound of the epsilon of all steps of one training at one institution; see `composed_epsilon`."""
    return composed_epsilon(((multiplier, sampling_rate, steps),), delta)


@cache
def composed_epsilon(kinds: tuple[Steps, ...], delta: float) -> float:
    """Upper bound of the epsilon of steps of several kinds, of one training or of many.

    Args:
        kinds: of steps; their order has no meaning.
        delta: of all steps together.

    Returns:
        0 without steps, infinity if a kind has no noise.
    """
    history = [kind for kind in kinds if kind[2]]
    if not history:
        return 0.0
    if not all(multiplier > 0 for multiplier, _, _ in history):
        return inf
    # Slow to import: only trainings with privacy need it.
    from opacus.accountants import RDPAccountant

    from brainfed.federation.privacy.prv import QuickPRVAccountant, quick_bound

    renyi, prv = RDPAccountant(), QuickPRVAccountant()
    renyi.history = prv.history = history
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        bound = quick_bound(prv.history, delta)
        if not bound <= WIDEST:
            return float(renyi.get_epsilon(delta))
        found = float(prv.get_epsilon(delta, eps_error=max(EPSILON_ERROR, ERROR_SHARE * bound)))
        return found if found >= SMALL else float(prv.get_epsilon(delta, eps_error=SMALL_ERROR))
