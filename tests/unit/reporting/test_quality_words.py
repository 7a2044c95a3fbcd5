"""The sentence on connectivity and motion says what its numbers say."""

import numpy as np
import pandas as pd
import pytest

from brainfed.cohort.settings.flags import FlagSettings
from brainfed.reporting.text.quality_words import quality_words

UNKNOWN = ("mean_fd", "mean_fc", "tr", "tsnr", "timepoints", "coverage", "typicality", "typicality_z")


@pytest.mark.parametrize(
    ("related", "said"),
    [
        (0, "Connectivity does not go with motion (QC-FC): none of 1,000 connections do"),
        (1, "Connectivity hardly goes with motion (QC-FC): 0.1 % of 1,000 connections"),
        (500, "Connectivity goes with motion (QC-FC): 50 % of 1,000 connections"),
    ],
)
def test_how_many_connections_go_with_motion(related, said):
    """Those that do have p = 1e-9; the others' p is 1, so that none of them is a discovery."""
    people = pd.DataFrame({"subject": ["a", "b"], "included": True, "diagnosis": [1, 0], "site": "x"})
    people = people.assign(**dict.fromkeys(UNKNOWN, np.nan))
    p = np.where(np.arange(1000) < related, 1e-9, 1.0)
    connections = pd.DataFrame({"r": 0.1, "p": p, "within_r": 0.1, "within_p": p})
    assert any(sentence.startswith(said) for sentence in quality_words(people, connections, FlagSettings()))
