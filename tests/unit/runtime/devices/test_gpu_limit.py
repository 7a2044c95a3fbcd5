"""A run without GPUs is one for the jobs that it submits too."""

import os
import subprocess
import sys

import pytest

from brainfed.runtime.devices.gpu_limit import VARIABLE, announce, gpus


@pytest.fixture(autouse=True)
def unannounced(monkeypatch):
    """No limit is set before a test, nor after it."""
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.delenv(VARIABLE)


def test_a_job_has_its_gpus_unless_the_run_has_none():
    assert gpus(1) == 1
    announce(True)
    assert (gpus(0), gpus(1)) == (0, 1)
    announce(False)
    assert (gpus(0), gpus(1)) == (0, 0)


def test_a_process_that_is_started_later_inherits_the_limit():
    announce(False)
    source = "from brainfed.runtime.devices.gpu_limit import gpus; print(gpus(2))"
    done = subprocess.run([sys.executable, "-c", source], env=os.environ, capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
