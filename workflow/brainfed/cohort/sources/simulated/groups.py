"""Groups of alike people inside a simulated cohort: a positive control for graphs, whose answer is known.

A group shares sex, a narrow band of age and connectivity of its own, so a population graph joins its members. How
well it also shares the diagnosis is the dose (`group_agreement`), and nothing else changes with it: another dose moves
some people to the other sex's group of the same age, whose sex and connectivity they take.
"""

from dataclasses import dataclass

import numpy as np

from brainfed.cohort.settings.cohort import Diagnosis, Sex, SimulateSettings
from brainfed.runtime.streams import Streams

SEXES: tuple[Sex, Sex] = ("male", "female")
BAND = 0.5
"""Width of a group's ages, as a part of the distance between two bands."""


@dataclass(frozen=True)
class Group:
    """People who are alike; ages in years, ascending."""

    number: int
    sex: Sex
    ages: tuple[float, float]
    diagnosis: Diagnosis


def simulated_groups(settings: SimulateSettings) -> tuple[Group, ...]:
    """All groups: in every band of age one of either sex, one of them the patients'.

    Which sex that is alternates from band to band, so that neither sex, nor age, nor a line through both predicts the
    diagnosis. The bands lie evenly spaced, with the mean and the standard deviation of `age_mean` and `age_sd`.
    """
    bands = settings.groups // len(SEXES)
    if bands == 0:
        return ()
    spacing = settings.age_sd * np.sqrt(12 / max(bands**2 - 1, 1))
    groups = []
    for number in range(settings.groups):
        band, sex = divmod(number, len(SEXES))
        centre = settings.age_mean + spacing * (band - (bands - 1) / 2)
        reach = BAND * spacing / 2
        groups.append(
            Group(number, SEXES[sex], (centre - reach, centre + reach), "patient" if (band + sex) % 2 else "control")
        )
    return tuple(groups)


def draw_group(settings: SimulateSettings, subject: str, diagnosis: Diagnosis, streams: Streams) -> Group:
    """The group that `subject` belongs to: one of its own diagnosis with probability (1 + agreement) / 2.

    At agreement 0 a group says nothing about its members' diagnoses, at 1 all have one. The draws behind it are the
    same at every agreement.
    """
    random = streams.numpy("simulate", "membership", subject)
    agrees = random.random() < (1 + settings.group_agreement) / 2
    place = random.random()
    meant = [group for group in simulated_groups(settings) if (group.diagnosis == diagnosis) == agrees]
    return meant[int(place * len(meant))]
