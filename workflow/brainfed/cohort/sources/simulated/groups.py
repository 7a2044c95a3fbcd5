"""Groups of similar subjects inside a simulated cohort: a positive control for graphs with a known answer.

A group shares sex, a narrow age band and connectivity of its own, so a population graph joins its members. The dose
(`group_agreement`) is the agreement of the group's diagnoses. Another dose moves some subjects to the other sex's group
of the same age, with its sex and connectivity, and changes nothing else.
"""

from dataclasses import dataclass

import numpy as np

from brainfed.cohort.settings.classes import Diagnosis, Sex
from brainfed.cohort.settings.simulation import SimulateSettings
from brainfed.runtime.streams import Streams

SEXES: tuple[Sex, Sex] = ("male", "female")
BAND = 0.5
"""Width of a group's ages, as a fraction of the distance between two bands."""


@dataclass(frozen=True)
class Group:
    """A group of similar subjects; ages in years, ascending."""

    number: int
    sex: Sex
    ages: tuple[float, float]
    diagnosis: Diagnosis


def simulated_groups(settings: SimulateSettings) -> tuple[Group, ...]:
    """All groups: one of either sex in every age band; one of the two is the patients'.

    The patients' sex alternates from band to band, so that neither sex, nor age, nor a line through both predicts the
    diagnosis. The bands are evenly spaced, with the mean and the standard deviation of `age_mean` and `age_sd`.
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
    """Draw the group of `subject`: one of its own diagnosis with probability (1 + agreement) / 2.

    At agreement 0 a group is independent of its members' diagnoses, at 1 all have one. The draws are the same at
    every agreement.
    """
    random = streams.numpy("simulate", "membership", subject)
    agrees = random.random() < (1 + settings.group_agreement) / 2
    place = random.random()
    meant = [group for group in simulated_groups(settings) if (group.diagnosis == diagnosis) == agrees]
    return meant[int(place * len(meant))]
