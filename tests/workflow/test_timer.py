"""Snakemake's scheduler waits with one timer, however many jobs have ended, and keeps its limit on jobs."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.processes.awaited import HANGS_AFTER_S

pytestmark = [pytest.mark.full("It waits for the rate of a scheduler."), pytest.mark.workflow]

RULES = Path(__file__).resolve().parents[2] / "workflow" / "rules"
JOBS = 7
LIMIT, SPAN_S = 3, 2
SNAKEFILE = f"""
import threading
import time
from snakemake.scheduling.job_scheduler import JobScheduler

choose, most = JobScheduler.job_selector, [0]

def pending():
    timers = (each for each in threading.enumerate() if type(each) is threading.Timer)
    return sum(not each.finished.is_set() for each in timers)

def counted(self, *arguments):
    # One that has just called the scheduler ends in a moment.
    soon = time.monotonic() + 0.5
    while pending() > 1 and time.monotonic() < soon:
        time.sleep(0.01)
    most.append(pending())
    return choose(self, *arguments)

JobScheduler.job_selector = counted

include: "{RULES}/shell.smk"

rule all:
    input: expand("{{number}}", number=range({JOBS}))

rule one:
    output: "{{number}}"
    script: "touch.py"

onsuccess:
    with open("most", "w") as file:
        file.write(f"{{len(most)}} {{max(most)}}")
"""


def run(folder: Path, *options: str) -> tuple[int, int]:
    """The number of looks for jobs, and the most timers at a time, of a run that makes all."""
    (folder / "Snakefile").write_text(SNAKEFILE)
    (folder / "touch.py").write_text("from pathlib import Path\nPath(snakemake.output[0]).touch()\n")
    command = [sys.executable, "-m", "snakemake", "all", "--cores", "1", "--quiet", "host", *options]
    done = subprocess.run(command, cwd=folder, timeout=HANGS_AFTER_S, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    looks, timers = map(int, (folder / "most").read_text().split())
    return looks, timers


def test_the_scheduler_has_one_timer(tmp_path: Path) -> None:
    looks, timers = run(tmp_path)
    assert looks > JOBS
    assert timers == 1


def test_no_more_jobs_start_in_a_time_span_than_its_limit(tmp_path: Path) -> None:
    _, timers = run(tmp_path, "--max-jobs-per-timespan", f"{LIMIT}/{SPAN_S}s")
    assert timers == 1
    made = sorted((tmp_path / str(number)).stat().st_mtime for number in range(JOBS))
    # A job takes a tenth of a second, so the ends of jobs are as far apart as their starts, but for that.
    assert all(later - sooner > SPAN_S - 1 for sooner, later in zip(made, made[LIMIT:], strict=False))
