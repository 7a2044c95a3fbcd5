"""A workflow waits for its jobs after a stop signal, also with a shell that forks (bash before 5.1)."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.workflow

RULES = Path(__file__).resolve().parents[2] / "workflow" / "rules"
SNAKEFILE = f"""
include: "{RULES}/shell.smk"

rule train:
    output: "scores"
    script: "train.py"
"""
TRAIN = """
import time
from pathlib import Path
from brainfed.runtime.jobs.stopping import stop_asked, stoppable, whole

try:
    with stoppable():
        for _ in whole(range(1)):
            Path("running").touch()
            while not stop_asked():
                time.sleep(0.05)
            time.sleep(3)
            Path("kept").touch()
except KeyboardInterrupt:
    raise SystemExit(130)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workflow of one job, and a bash that waits for its last command."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "train.py").write_text(TRAIN)
    bash = tmp_path / "bin" / "bash"
    bash.parent.mkdir()
    bash.write_text(f'#!/bin/sh\nexec {shutil.which("bash")} -c "$2\nexit"\n')
    bash.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("forks", ["", "off"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_workflow_waits_for_a_job_that_keeps_its_round(folder: Path, number: signal.Signals, forks: str) -> None:
    log = folder / "log"
    with log.open("w") as output:
        running = subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--cores", "1"],
            cwd=folder,
            env=os.environ | {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "BRAINFED_FORKS": forks},
            start_new_session=True,
            stdout=output,
            stderr=output,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    deadline = time.monotonic() + 60
    while not (folder / "running").exists() and running.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(running.pid, number)
    running.wait(timeout=60)
    kept, said = (folder / "kept").exists(), log.read_text()
    assert running.returncode != 0
    assert kept, said
    assert not (folder / "scores").exists()
    # The shell's settings, and the job's exit code.
    client = "" if forks else r"\S+python\S* -I -S \S+/client\.py +"
    command = rf"set -euo pipefail; exec +{client}\S+python\S* \S+/\.snakemake/scripts/\S+\.train\.py"
    assert number == signal.SIGINT or re.search(rf"{command}' returned non-zero exit status 130", said), said


def test_every_job_is_one_command() -> None:
    rules = [*RULES.glob("*.smk"), RULES.parent / "Snakefile"]
    other = re.compile(r"^ +(shell|run|wrapper|notebook|cwl):", re.MULTILINE)
    assert [path.name for path in rules if other.search(path.read_text())] == []
