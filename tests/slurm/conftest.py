"""One SLURM for the tests of this folder, and the workflow's profile with polls that fit jobs of seconds."""

import pytest

from slurm.cluster import Cluster, unavailable


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A running SLURM; the tests are skipped where none can be started."""
    reason = unavailable()
    if reason:
        pytest.skip(reason)
    started = Cluster(tmp_path_factory.mktemp("slurm"))
    try:
        started.start()
        yield started
    finally:
        started.stop()
