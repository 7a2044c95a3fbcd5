"""Snakemake's scheduler waits with one timer, however many jobs have ended."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.workflow

RULES = Path(__file__).resolve().parents[2] / "workflow" / "rules"
JOBS = 12
SNAKEFILE = f"""
import threading
from snakemake.scheduling.job_scheduler import JobScheduler

choose, most = JobScheduler.job_selector, [0]

def counted(self, *arguments):
    most.append(sum(type(each) is threading.Timer for each in threading.enumerate()))
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


def test_the_scheduler_has_one_timer(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "touch.py").write_text("from pathlib import Path\nPath(snakemake.output[0]).touch()\n")
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--quiet", "all"]
    done = subprocess.run(command, cwd=tmp_path, timeout=120, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    chosen, timers = map(int, (tmp_path / "most").read_text().split())
    assert chosen > JOBS
    assert timers == 1
