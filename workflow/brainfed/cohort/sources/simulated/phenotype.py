"""Simulated subjects: site, age, sex and diagnosis, each drawn independently.

In a cohort with groups, sex and age are those of the subject's group.
"""

from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd

from brainfed.cohort.settings.classes import Diagnosis, Sex
from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.settings.simulation import SimulateSettings
from brainfed.cohort.sources.simulated.groups import draw_group
from brainfed.cohort.sources.simulated.listing import simulated_subjects
from brainfed.runtime.streams import Streams

AGE_RANGE = (6.0, 80.0)
BLOCK = 20
MEAN_FD = 0.12
MEAN_FD_SPREAD = 0.45


@dataclass(frozen=True)
class SimulatedSubject:
    """One row of the phenotype table; age in years, mean framewise displacement in mm.

    `group` is in no table; None in a cohort without groups.
    """

    participant_id: str
    site: str
    age: float
    sex: Sex
    diagnosis: Diagnosis
    mean_fd: float
    group: int | None = None


def simulate_subjects(settings: CohortSettings, streams: Streams) -> dict[str, SimulatedSubject]:
    """The subjects of a simulated cohort by id.

    Every 20 subjects hold 10 patients in random order, whatever their sites: with every site balanced
    exactly, a classifier that sees the site would do worse than chance on held-out subjects. Age
    (normal), sex (a coin) and mean framewise displacement (log-normal) are drawn for each subject
    alone; groups replace sex and age by theirs. One more subject does not change the others.
    """
    simulate = settings.simulate
    subjects = {}
    for position, (subject, site) in enumerate(simulated_subjects(settings).items()):
        block, place = divmod(position, BLOCK)
        order = streams.numpy("simulate", "diagnosis", block).permutation(BLOCK)
        random = streams.numpy("simulate", "phenotype", subject)
        alone = SimulatedSubject(
            participant_id=subject,
            site=site,
            age=round(float(np.clip(random.normal(simulate.age_mean, simulate.age_sd), *AGE_RANGE)), 2),
            sex="male" if random.random() < 0.5 else "female",
            diagnosis="patient" if order[place] < BLOCK // 2 else "control",
            mean_fd=round(float(random.lognormal(np.log(MEAN_FD), MEAN_FD_SPREAD)), 4),
        )
        subjects[subject] = _grouped(alone, simulate, streams) if simulate.groups else alone
    return subjects


def simulate_phenotypes(settings: CohortSettings, streams: Streams) -> pd.DataFrame:
    """The phenotype table: participant_id, site, age, sex, diagnosis, mean_fd; one row a subject."""
    table = pd.DataFrame([asdict(subject) for subject in simulate_subjects(settings, streams).values()])
    return table.drop(columns="group")


def _grouped(alone: SimulatedSubject, settings: SimulateSettings, streams: Streams) -> SimulatedSubject:
    """Subject as a member of a group, with its sex and an age in its band."""
    group = draw_group(settings, alone.participant_id, alone.diagnosis, streams)
    drawn = streams.numpy("simulate", "age-in-group", alone.participant_id).uniform(*group.ages)
    age = round(float(np.clip(drawn, *AGE_RANGE)), 2)
    return replace(alone, sex=group.sex, age=age, group=group.number)
