"""Participants and the quality of their scans, as the jobs write them, of sound subjects."""

import numpy as np
import pandas as pd

from brainfed.cohort.quality import crossings_of_inclusion, measure_scans, with_motion


def people_table(subjects, diagnosis, **columns):
    """Participants with series at one site; a diagnosis of None is unknown."""
    usual = {
        "site": "a", "age": 20.0, "sex": "male", "diagnosis": pd.array(list(diagnosis), dtype="Int8"), "mean_fd": 0.1,
        "fd_source": "table", "has_series": True, "absence": "", "fd_problem": "",
    }  # fmt: skip
    people = pd.DataFrame({"subject": list(subjects)} | usual | columns)
    return people.astype({"sex": "string"})


def quality_table(subjects, **columns):
    """Of scans with 150 volumes each, no two of which are alike."""
    usual = {
        "timepoints": 150, "tr": 2.0, "header_tr": np.nan, "constant_regions": 0, "empty_regions": 0, "runs": 1,
        "checksum": list(subjects), "resampled": "", "suspicion": "", "problem": "",
    }  # fmt: skip
    return pd.DataFrame({"subject": list(subjects)} | usual | columns)


def measure(participants, quality, coverage, min_coverage, connectivity=None):
    """The measures of scans with the motion of the participants, as two jobs make them."""
    scans = measure_scans(participants["subject"], quality, coverage, min_coverage, connectivity)
    return with_motion(scans, participants)


def crossings_of_checksums(people, subjects):
    """What crosses institutions in the search for identical scans of these subjects."""
    return crossings_of_inclusion(people[people["subject"].isin(subjects)].assign(checksum="1"), "timeseries")
