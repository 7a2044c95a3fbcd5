"""Processes that end with the one that started them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from support.processes.awaited import until_true

WORKFLOW = Path(__file__).parents[4] / "workflow"


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's signal at a parent's end is Linux's")
def test_no_process_outlives_a_killed_parent(tmp_path):
    program = (
        "import os, sys, time; from pathlib import Path; from brainfed.deployment.flower.processes import start;"
        "child = start('child', ['sleep', '60'], os.environ, Path(sys.argv[1]));"
        "print(child.process.pid, flush=True); time.sleep(60)"
    )
    environment = {**os.environ, "PYTHONPATH": str(WORKFLOW)}
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "log")], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    cmdline = Path(f"/proc/{child}/cmdline")
    until_true(lambda: cmdline.read_bytes().startswith(b"sleep"))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    until_true(lambda: not cmdline.exists() or cmdline.read_bytes() == b"")
