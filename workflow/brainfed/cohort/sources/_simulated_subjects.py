"""Simulated subjects: phenotypes, groups of similar subjects as a positive control, cortical thickness."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from brainfed.cohort import Diagnosis, Sex
from brainfed.cohort.settings import CohortSettings, SimulateSettings
from brainfed.cohort.sources._listing import simulated_subjects
from brainfed.runtime import Streams, write_tsv

# Groups of similar subjects inside a simulated cohort: a positive control for graphs with a known answer.
#
# A group shares sex, a narrow age band and connectivity of its own, so a population graph joins its members. The dose
# (`group_agreement`) is the agreement of the group's diagnoses. Another dose moves some subjects to the other sex's
# group of the same age, with its sex and connectivity, and changes nothing else.

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
    spacing = settings.age_sd * np.sqrt(12 / max(bands**2 - 1, 1))
    reach = BAND * spacing / 2
    groups = []
    for number in range(settings.groups):
        band, sex = divmod(number, len(SEXES))
        centre = settings.age_mean + spacing * (band - (bands - 1) / 2)
        diagnosis: Diagnosis = "patient" if (band + sex) % 2 else "control"
        groups.append(Group(number, SEXES[sex], (centre - reach, centre + reach), diagnosis))
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


# Simulated subjects: site, age, sex and diagnosis, each drawn independently.
#
# In a cohort with groups, sex and age are those of the subject's group.

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


FIRST = "lh.simulated.thickness"
"""First cell of the table: hemisphere, parcellation, measure."""
THINNEST, THICKEST = 1.8, 3.2
DEVIATION = 0.15
"""Standard deviation between the subjects of a site, in mm."""
STEP = 5
"""Diagnosis moves every fifth region, up and down in turn."""


def simulate_thickness(settings: CohortSettings, streams: Streams) -> pd.DataFrame:
    """Thickness in mm of every region; one row a subject that has measures. One more subject changes no other row."""
    simulate = settings.simulate
    regions = simulate.thickness_regions
    mean = streams.numpy("simulate", "thickness").uniform(THINNEST, THICKEST, regions)
    moved = np.zeros(regions)
    moved[::STEP] = np.where(np.arange(len(moved[::STEP])) % 2 == 0, -1.0, 1.0)
    names = [
        f"{side}_region{number:03d}_thickness" for number in range(1, (regions + 1) // 2 + 1) for side in ("lh", "rh")
    ]
    rows = {}
    for subject in simulate_subjects(settings, streams).values():
        random = streams.numpy("simulate", "thickness", subject.participant_id)
        site = streams.numpy("simulate", "thickness-site", subject.site).standard_normal(regions)
        missing = random.random() < simulate.thickness_missing
        shift = simulate.thickness_effect * (0.5 if subject.diagnosis == "patient" else -0.5) * moved
        own = random.standard_normal(regions) + simulate.thickness_site_spread * site + shift
        if not missing:
            rows[subject.participant_id] = np.round(mean + DEVIATION * own, 3)
    table = pd.DataFrame.from_dict(rows, orient="index", columns=names[:regions])
    return table.rename_axis(FIRST).reset_index()


def write_thickness(path: str | Path, settings: CohortSettings) -> None:
    """Write the table of a simulated cohort."""
    write_tsv(path, simulate_thickness(settings, Streams(settings.simulate.seed)), keep_names=True)
