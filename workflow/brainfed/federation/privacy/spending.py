"""The rows of privacy.json: what each institution planned to spend and spent."""

from dataclasses import dataclass

from brainfed.federation.privacy.accounting import epsilon_spent
from brainfed.federation.privacy.settings import UNIT, PrivacySettings


@dataclass(frozen=True)
class Spending:
    """Private steps of one institution in one fold.

    Attributes:
        institution: its name.
        fold: number of the fold; in each fold the institution trains anew.
        subjects: number of its training subjects.
        sampling_rate: probability that a step includes a subject.
        steps: number of steps that it has taken.
        noise_multiplier: standard deviation of the noise over the clipping norm.
    """

    institution: str
    fold: int
    subjects: int
    sampling_rate: float
    steps: int
    noise_multiplier: float


def spending_row(spending: Spending, settings: PrivacySettings) -> dict[str, int | float | str]:
    """One row of `Outcome.privacy`; epsilon is that of all steps taken in this fold."""
    spent = epsilon_spent(spending.noise_multiplier, spending.sampling_rate, spending.steps, settings.delta)
    return {
        "institution": spending.institution,
        "fold": spending.fold,
        "unit": UNIT,
        "privacy": settings.privacy,
        "delta": settings.delta,
        "clip": settings.clip,
        "noise_multiplier": spending.noise_multiplier,
        "sampling_rate": spending.sampling_rate,
        "steps": spending.steps,
        "subjects": spending.subjects,
        "epsilon_planned": settings.epsilon,
        "epsilon_spent": spent,
    }
