"""Epsilon of a training in private steps: what is planned, what is spent, and the noise that it takes."""

import warnings
from dataclasses import asdict, dataclass
from functools import cache
from math import exp, inf, log, sqrt

import numpy as np

from brainfed.federation._settings import UNIT, PrivacySettings, PrivateSchedule, sampling_rate, steps_of_an_epoch
from brainfed.runtime import UserError

# Epsilon of a training with clipped and noised gradients, by Opacus' accountants.
#
# A step includes each subject with probability q (Poisson sampling) and releases the sum of clipped gradients with
# Gaussian noise; steps compose, within a training and over all trainings of a study. The PRV accountant (Gopi et al.
# 2021) computes the composition numerically and returns an upper bound. Renyi accounting gives an epsilon 7 to 9 %
# larger for trainings between 3 and 60, and more below.

Steps = tuple[float, float, int]
"""Of one kind: the noise multiplier (standard deviation over clipping norm), the probability q in (0, 1] that a step
includes a subject, and the number of steps."""

EPSILON_ERROR, ERROR_SHARE = 0.01, 0.002
"""The bound is above the true epsilon by at most twice the larger of 0.01 and 0.2 % of its Renyi bound: the accountant
adds this error, and its grid, whose size falls with it, rounds."""

SMALL = 0.2
SMALL_ERROR = 0.0005
"""The error where epsilon is below `SMALL`."""

WIDEST = 100.0
"""Epsilon above which Renyi accounting gives the result, at least 5 % larger: PRV's grid grows with epsilon."""


def epsilon_spent(multiplier: float, sampling_rate: float, steps: int, delta: float) -> float:
    """Upper bound of the epsilon of all steps of one training at one institution; see `composed_epsilon`."""
    return composed_epsilon(((multiplier, sampling_rate, steps),), delta)


@cache
def composed_epsilon(kinds: tuple[Steps, ...], delta: float) -> float:
    """Upper bound of the epsilon of steps of several kinds in any order; 0 without steps, infinite without noise."""
    history = [kind for kind in kinds if kind[2]]
    if not history:
        return 0.0
    if not all(multiplier > 0 for multiplier, _, _ in history):
        return inf
    # Slow to import: only trainings with privacy need it.
    from opacus.accountants import RDPAccountant

    from brainfed.federation._prv import prv_accountant, quick_bound

    renyi, prv = RDPAccountant(), prv_accountant()
    renyi.history = prv.history = history
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        bound = quick_bound(prv.history, delta)
        if not bound <= WIDEST:
            return float(renyi.get_epsilon(delta))
        epsilon = float(prv.get_epsilon(delta, eps_error=max(EPSILON_ERROR, ERROR_SHARE * bound)))
        return epsilon if epsilon >= SMALL else float(prv.get_epsilon(delta, eps_error=SMALL_ERROR))


# Noise multiplier of a training: the standard deviation of the noise over the clipping norm.

PRECISION = 5e-4
"""Relative precision of the smallest multiplier."""

LARGEST = 1e5
"""Multiplier beyond which no training is worth its noise."""


def noise_multiplier(settings: PrivacySettings, sampling_rate: float, steps: int) -> float:
    """The noise multiplier of all steps of a training at one institution; 0 without privacy.

    The calibrations `paper` and `classical` ignore the sampling rate and the number of steps.

    Raises:
        UserError: no noise keeps the training within epsilon.
    """
    constant = 2 * log(1.25 / settings.delta)
    match settings.privacy:
        case "none":
            return 0.0
        case "paper":
            return sqrt(constant / settings.epsilon)
        case "classical":
            return sqrt(constant) / settings.epsilon
        case "accountant":
            return _smallest(settings.epsilon, settings.delta, sampling_rate, steps)


def planned_steps(schedule: PrivateSchedule, subjects: int) -> Steps:
    """All steps of a training at an institution with so many training subjects.

    Raises:
        UserError: no noise keeps the training within epsilon.
    """
    rate = sampling_rate(schedule.batch, subjects)
    steps = schedule.rounds * schedule.local_epochs * steps_of_an_epoch(schedule.batch, subjects)
    return noise_multiplier(schedule, rate, steps), rate, steps


@cache
def _smallest(epsilon: float, delta: float, sampling_rate: float, steps: int) -> float:
    """Smallest multiplier, to `PRECISION`, with which the accountant's bound is at most epsilon."""

    def excess(multiplier: float) -> float:
        return log(epsilon_spent(multiplier, sampling_rate, steps, delta) / epsilon)

    low = high = 1.0
    above = below = excess(1.0)
    while below > 0:
        low, above, high = high, below, high * 2
        if high > LARGEST:
            raise UserError(
                f"epsilon: expected a budget that {steps} steps can keep with delta = {delta:g}, found {epsilon:g}; "
                "raise epsilon or take fewer rounds."
            )
        below = excess(high)
    while above <= 0:
        high, below, low = low, above, low / 2
        above = excess(low)
    while high / low > 1 + PRECISION:
        # Log epsilon is nearly linear in log multiplier: the secant's root, kept inside the bracket.
        width = log(high / low)
        inside = min(max(width * (above / (above - below)), PRECISION / 3), width - PRECISION / 3)
        middle = low * exp(inside)
        between = excess(middle)
        if between > 0:
            low, above = middle, between
        else:
            high, below = middle, between
    return high


@dataclass(frozen=True)
class Spending:
    """Private steps of one institution in one fold, in which it trains anew; `subjects` are its training subjects."""

    institution: str
    fold: int
    subjects: int
    sampling_rate: float
    steps: int
    noise_multiplier: float


def spending_row(spending: Spending, settings: PrivacySettings) -> dict[str, int | float | str]:
    """One row of `Outcome.privacy`; epsilon is that of all steps taken in this fold."""
    return asdict(spending) | {
        "unit": UNIT,
        "privacy": settings.privacy,
        "delta": settings.delta,
        "clip": settings.clip,
        "epsilon_planned": settings.epsilon,
        "epsilon_spent": epsilon_spent(
            spending.noise_multiplier, spending.sampling_rate, spending.steps, settings.delta
        ),
    }
