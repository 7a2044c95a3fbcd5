"""Holm's correction by hand, and equal to statsmodels' to the bit."""

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from brainfed.evaluation.holm import holm


def test_holm_by_hand():
    # Sorted .01 .02 .04 by 3, 2, 1: .03 .04 .04; the undefined one does not make the family larger.
    np.testing.assert_allclose(holm(np.array([0.04, 0.01, np.nan, 0.02])), [0.04, 0.03, np.nan, 0.04])


def test_holm_of_nothing():
    assert np.isnan(holm(np.array([np.nan]))).all()
    assert len(holm(np.zeros(0))) == 0


@pytest.mark.parametrize("seed", range(20))
def test_every_family_is_corrected_as_statsmodels_does(seed):
    random = np.random.default_rng(seed)
    p = random.choice([random.random(), 1.0, 0.0, 0.03, 0.2, 1e-12], size=random.integers(1, 40))
    p = np.where(random.random(len(p)) < 0.5, p, random.random(len(p)))
    np.testing.assert_array_equal(holm(p), multipletests(p, method="holm")[1])
