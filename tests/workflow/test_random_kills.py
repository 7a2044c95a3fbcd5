"""Kills at random times in random ways: the rerun ends with the same results, and nothing is left.

`benchmarks/random_kills.py` does the same two hundred times.
"""

import random
import sys

import pytest

from workflow.interrupted import Interrupted, finish, left_over, results_of, whole_project

pytestmark = [
    pytest.mark.full("Kills and a whole run after them take half a minute."),
    pytest.mark.workflow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]

KILLS, CORES = 6, 2


def test_a_workflow_killed_again_and_again_ends_with_the_same_bytes_and_leaves_nothing(tmp_path):
    whole = whole_project(tmp_path / "whole")
    seconds, draw, kills = finish(whole, CORES), random.Random("kills"), 0
    expected = results_of(whole)
    assert "reports/tiny.html" in expected
    while kills < KILLS:
        runs = Interrupted(whole_project(tmp_path / f"after-{kills}"), draw, 2 * seconds / KILLS, CORES)
        # A run may end before it is killed; then another project takes the kills that are left.
        while kills + runs.kills.total() < KILLS and runs.kill_once():
            pass
        kills += runs.kills.total()
        finish(runs.project, CORES)
        found = results_of(runs.project)
        assert found.keys() == expected.keys()
        assert [name for name in expected if found[name] != expected[name]] == []
        assert left_over(runs.project) == []
