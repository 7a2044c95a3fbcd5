"""A sound cohort of region series, and its config."""

import pytest

from support.broken.broken_inputs import series_cohort


@pytest.fixture
def cohort(tmp_path):
    return series_cohort(tmp_path)


@pytest.fixture
def config(cohort):
    return cohort.configure()
