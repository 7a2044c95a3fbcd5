"""Snakemake ends when it is asked to, whatever it does at that moment."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.workflow

RULES = Path(__file__).resolve().parents[2] / "workflow" / "rules"
SNAKEFILE = f"""
import os, signal, time
from snakemake.scheduling.job_scheduler import JobScheduler

choose, asked = JobScheduler.job_selector, []

def asked_meanwhile(self, *arguments):
    with self._lock:
        if not asked:
            asked.append(True)
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.1)
    return choose(self, *arguments)

JobScheduler.job_selector = asked_meanwhile

include: "{RULES}/shell.smk"

rule first:
    output: "first"
    script: "touch.py"

rule second:
    input: "first"
    output: "second"
    script: "touch.py"
"""


def test_a_request_to_end_while_jobs_are_chosen_is_heard(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "touch.py").write_text("from pathlib import Path\nPath(snakemake.output[0]).touch()\n")
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "second"]
    done = subprocess.run(command, cwd=tmp_path, timeout=60, text=True, capture_output=True, check=False)
    assert done.returncode != 0, done.stderr
    assert "Will exit after finishing currently running jobs" in done.stderr
    assert (tmp_path / "first").exists()
    assert not (tmp_path / "second").exists()
