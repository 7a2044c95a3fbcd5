"""A simulated table of cortical thickness, as aparcstats2table writes it."""

from pathlib import Path

import numpy as np
import pandas as pd

from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.sources.simulated.phenotype import simulate_subjects
from brainfed.runtime.artefacts import write_tsv
from brainfed.runtime.streams import Streams

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
