"""Ten kills at random times in random ways: the rerun ends with the same results, and nothing is left.

`benchmarks/random_kills.py` does the same two hundred times.
"""

import random
import sys

import pytest

from workflow.interrupted import Interrupted, finish, left_over, results_of, whole_project

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]

KILLS, CORES = 10, 2


def test_a_workflow_killed_ten_times_ends_with_the_same_bytes_and_leaves_nothing(tmp_path):
    whole, killed = whole_project(tmp_path / "whole"), whole_project(tmp_path / "killed")
    seconds = finish(whole, CORES)
    runs = Interrupted(killed, random.Random("ten kills"), 2 * seconds / KILLS, CORES)
    while runs.kills.total() < KILLS and runs.kill_once():
        pass
    assert runs.kills.total() >= KILLS // 2, f"the runs ended before they could be killed: {runs.kills}"

    finish(killed, CORES)
    expected, found = results_of(whole), results_of(killed)
    assert found.keys() == expected.keys()
    assert "reports/tiny.html" in expected
    assert [name for name in expected if found[name] != expected[name]] == []
    assert left_over(killed) == []
