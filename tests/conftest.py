"""Settings of the whole test suite."""

import gc
import os

import pytest
from hypothesis import settings

from made_once import keep_below

# No test asserts a wall-clock time, so neither may hypothesis.
settings.register_profile("brainfed", deadline=None)
settings.load_profile("brainfed")

# The jobs of all runs, of all workers, are forked from one process, which ends with the test run.
os.environ.setdefault("BRAINFED_FORKS", f"{os.getpid()}-tests")

# Workers side by side have a core each; libraries read this when they are first imported.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"


@pytest.fixture(scope="session", autouse=True)
def _folders_of_all_processes(tmp_path_factory):
    base = tmp_path_factory.getbasetemp()
    keep_below(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)


def pytest_collection_finish():
    """Keep the objects of all libraries out of later garbage collections."""
    gc.collect()
    gc.freeze()
