"""What a run locks: its cohorts, its report, and what is linked below a cohort."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from brainfed.configuration.layout.locks import lock_files
from brainfed.runtime.errors import UserError
from brainfed.runtime.scheduling.one_run import hold


@pytest.fixture
def holding(tmp_path):
    """Hold the locks of a run in a clone of that name until the test ends."""
    with ExitStack() as held:
        yield lambda clone, cohorts, project="study": hold(
            held, lock_files(tmp_path / clone / "results", cohorts, project)
        )


def test_runs_of_other_cohorts_and_projects_share_one_folder(holding, tmp_path):
    holding("clone", ["abide"], "one")
    holding("clone", ["adhd"], "two")
    locks = {path.relative_to(tmp_path / "clone/results").as_posix() for path in tmp_path.rglob("*.lock")}
    assert locks == {"abide/.lock", "adhd/.lock", "reports/.one.lock", "reports/.two.lock"}


@pytest.mark.parametrize("shared", ["results", "results/abide", "results/abide/timeseries"])
def test_two_clones_that_share_results_in_any_way_do_not_run_at_once(holding, tmp_path: Path, shared):
    for clone in ("one", "other"):
        link = tmp_path / clone / shared
        link.parent.mkdir(parents=True)
        (tmp_path / "shared").mkdir(exist_ok=True)
        link.symlink_to(tmp_path / "shared")
    holding("one", ["abide"])
    with pytest.raises(UserError, match="expected no other run that writes these results, found one that runs"):
        holding("other", ["abide"])


def test_two_projects_of_one_name_do_not_write_one_report_at_once(holding):
    holding("clone", ["abide"])
    with pytest.raises(UserError, match=r"/clone/results/reports: expected no other run"):
        holding("clone", ["adhd"])


def test_runs_that_hold_nothing_of_each_other_run_at_once(holding, tmp_path):
    holding("one", ["abide"])
    holding("other", ["abide"])
    assert all((tmp_path / clone / "results/abide/.lock").exists() for clone in ("one", "other"))
