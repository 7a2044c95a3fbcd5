"""Snakemake and the jobs that are forked for it."""

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.processes.awaited import HANGS_AFTER_S, until_true

pytestmark = pytest.mark.workflow

RULES = Path(__file__).resolve().parents[2] / "workflow" / "rules"
SNAKEFILE = f"""
include: "{RULES}/shell.smk"

rule all:
    input: "scores0", "scores1"

rule train:
    output: "scores{{number}}"
    benchmark: "train{{number}}.tsv"
    resources: shell_exec=JOB_SHELL
    script: "train.py"
"""


def started(folder: Path, text: str, forks: str) -> "subprocess.Popen[bytes]":
    """A workflow of two jobs that run this script."""
    (folder / "Snakefile").write_text(SNAKEFILE)
    (folder / "train.py").write_text(text)
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--cores", "2"],
            cwd=folder,
            env=os.environ | {"BRAINFED_FORKS": forks},
            start_new_session=True,
            stdout=log,
            stderr=log,
        )


BUSY = """
import sys
import time
from pathlib import Path

had = [name in sys.modules for name in ("numpy", "brainfed", "pandas")]
import numpy

large, end = numpy.ones(40_000_000), time.process_time() + 1.6
while time.process_time() < end:
    pass
Path(snakemake.output[0]).write_text(str(had))
"""


@pytest.mark.full("It keeps a core busy for ten seconds.")
@pytest.mark.parametrize("forks", ["", "off"])
def test_snakemake_measures_the_processor_time_and_memory_of_the_script(tmp_path: Path, forks: str) -> None:
    assert started(tmp_path, BUSY, forks).wait(timeout=HANGS_AFTER_S) == 0, (tmp_path / "log").read_text()
    for number in (0, 1):
        assert (tmp_path / f"scores{number}").read_text() == str([not forks, False, False])
        with (tmp_path / f"train{number}.tsv").open(newline="") as file:
            (row,) = csv.DictReader(file, delimiter="\t")
        assert float(row["cpu_time"]) > 0.8
        assert float(row["max_rss"]) > 40_000_000 * 8 / 1024**2


LONG = """
import os
import time
from pathlib import Path
from brainfed.runtime.jobs._stopping import stoppable

try:
    with stoppable():
        Path(f"running{snakemake.wildcards.number}").write_text(str(os.getpid()))
        time.sleep(3600)
except KeyboardInterrupt:
    Path(f"stopped{snakemake.wildcards.number}").touch()
"""


def test_jobs_end_soon_after_a_workflow_that_is_killed(tmp_path: Path) -> None:
    workflow = started(tmp_path, LONG, "")
    deadline = time.monotonic() + HANGS_AFTER_S
    while len(running := list(tmp_path.glob("running*"))) < 2 or not all(map(Path.read_text, running)):
        assert time.monotonic() < deadline and workflow.poll() is None, (tmp_path / "log").read_text()
        time.sleep(0.1)
    processes = [int(path.read_text()) for path in running]
    workflow.send_signal(signal.SIGKILL)
    workflow.wait()
    until_true(lambda: (tmp_path / "stopped0").exists() and (tmp_path / "stopped1").exists())
    until_true(lambda: not any(Path(f"/proc/{process}").exists() for process in processes))
