"""Settings of the whole test suite."""

import gc
import os

import pytest
from hypothesis import settings

from support.processes.made_once import keep_below
from support.processes.signals import hear_signals

hear_signals()

# No test asserts a wall-clock time, so neither may hypothesis.
settings.register_profile("brainfed", deadline=None)
settings.load_profile("brainfed")

# The jobs of all runs, of all workers, are forked from one process, which ends with the test run.
os.environ.setdefault("BRAINFED_FORKS", f"{os.getpid()}-tests")

# Made-up cohorts are small: threads that wait for one another cost more than they give, and most beside other work.
# Libraries read this when they are first imported.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"


def pytest_addoption(parser):
    """`--tier`: which of the two tiers is run."""
    explained = "first: what guards every change; rest: what guards a release beside it; all: both (default)"
    parser.addoption("--tier", choices=("first", "rest", "all"), default="all", help=explained)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leave out the tests of the other tier, and skip those on real data where there are none.

    Each mark `full` says in a sentence why the first tier is without it.
    """
    for item in items:
        if item.get_closest_marker("data") and "BRAINFED_DATA" not in os.environ:
            item.add_marker(pytest.mark.skip(reason="BRAINFED_DATA is not set"))
        for mark in item.iter_markers("full"):
            if not (len(mark.args) == 1 and str(mark.args[0]).endswith(".")):
                raise pytest.UsageError(f"{item.nodeid}: expected a mark full(sentence that says why), found {mark}")
    tier = config.getoption("tier")
    if tier != "all":
        kept = [item for item in items if (item.get_closest_marker("full") is None) == (tier == "first")]
        config.hook.pytest_deselected(items=[*{*items} - {*kept}])
        items[:] = kept


@pytest.fixture(scope="session", autouse=True)
def _folders_of_all_processes(tmp_path_factory):
    base = tmp_path_factory.getbasetemp()
    keep_below(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)


def pytest_collection_finish():
    """Keep the objects of all libraries out of later garbage collections."""
    keep_out_of_collections()


@pytest.fixture(scope="module", autouse=True)
def _what_a_module_leaves_is_kept_out_of_collections():
    """nilearn and statsmodels ask for one at every call, which took a second after thousands of tests."""
    yield
    keep_out_of_collections()


def keep_out_of_collections():
    """Keep all objects that are there out of later garbage collections."""
    gc.collect()
    gc.freeze()
