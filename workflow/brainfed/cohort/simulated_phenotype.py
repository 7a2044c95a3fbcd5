"""Who the simulated subjects are: site, age, sex and diagnosis, each drawn apart from the others."""

from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from brainfed.cohort.settings import CohortSettings, Diagnosis, Sex
from brainfed.cohort.simulated_listing import simulated_subjects
from brainfed.runtime.streams import Streams

AGE_RANGE = (6.0, 80.0)
BLOCK = 20
MEAN_FD = 0.12
MEAN_FD_SPREAD = 0.45


@dataclass(frozen=True)
class SimulatedSubject:
    """One row of the phenotype table; age in years, mean framewise displacement in mm."""

    participant_id: str
    site: str
    age: float
    sex: Sex
    diagnosis: Diagnosis
    mean_fd: float


def simulate_subjects(settings: CohortSettings, streams: Streams) -> dict[str, SimulatedSubject]:
    """The subjects of a simulated cohort by id.

    Every 20 subjects hold 10 patients in random order, whatever their sites: with every site balanced
    exactly, a classifier that sees the site would do worse than chance on held-out subjects. Age
    (normal), sex (a coin) and mean framewise displacement (log-normal) are drawn for each subject
    alone. One more subject leaves the others as they are.
    """
    simulate = settings.simulate
    subjects = {}
    for position, (subject, site) in enumerate(simulated_subjects(settings).items()):
        block, place = divmod(position, BLOCK)
        order = streams.numpy("simulate", "diagnosis", block).permutation(BLOCK)
        random = streams.numpy("simulate", "phenotype", subject)
        subjects[subject] = SimulatedSubject(
            participant_id=subject,
            site=site,
            age=round(float(np.clip(random.normal(simulate.age_mean, simulate.age_sd), *AGE_RANGE)), 2),
            sex="male" if random.random() < 0.5 else "female",
            diagnosis="patient" if order[place] < BLOCK // 2 else "control",
            mean_fd=round(float(random.lognormal(np.log(MEAN_FD), MEAN_FD_SPREAD)), 4),
        )
    return subjects


def simulate_phenotypes(settings: CohortSettings, streams: Streams) -> pd.DataFrame:
    """The phenotype table: participant_id, site, age, sex, diagnosis, mean_fd; one row a subject."""
    return pd.DataFrame([asdict(subject) for subject in simulate_subjects(settings, streams).values()])
