"""Noise multiplier of a training: the standard deviation of the noise over the clipping norm."""

from functools import cache
from math import exp, log, sqrt

from brainfed.federation.privacy.accounting import Steps, epsilon_spent
from brainfed.federation.privacy.schedule import PrivateSchedule, sampling_rate, steps_of_an_epoch
from brainfed.federation.privacy.settings import PrivacySettings
from brainfed.runtime.errors import UserError

PRECISION = 5e-4
"""Relative precision of the smallest multiplier."""

LARGEST = 1e5
"""Multiplier beyond which no training is worth its noise."""


def noise_multiplier(settings: PrivacySettings, sampling_rate: float, steps: int) -> float:
    """The noise multiplier of all steps of a training at one institution; 0 without privacy.

    Args:
        settings: of privacy.
        sampling_rate: probability in (0, 1] that a step includes a subject.
        steps: number of steps of the whole training. `paper` and `classical` ignore both.

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
        middle = _between(low, above, high, below)
        found = excess(middle)
        if found > 0:
            low, above = middle, found
        else:
            high, below = middle, found
    return high


def _between(low: float, above: float, high: float, below: float) -> float:
    """A multiplier where log epsilon, nearly linear in log multiplier, is about 0, inside the bracket."""
    width = log(high / low)
    share = above / (above - below)
    inside = min(max(width * share, PRECISION / 3), width - PRECISION / 3)
    return low * exp(inside)
