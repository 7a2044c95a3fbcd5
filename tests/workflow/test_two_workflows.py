"""Two workflows of one user at the same time on one machine with two GPUs: they share out the devices.

The jobs are real, from Snakemake's scheduler to the lease; the driver, torch and the work are not.
"""

import json
import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest

import brainfed
from support.processes.awaited import HANGS_AFTER_S
from support.processes.fake_driver import FakeDriver
from support.processes.fake_torch import write_fake_torch

pytestmark = pytest.mark.workflow

JOBS = 3
SNAKEFILE = f"""
rule all:
    input:
        expand("{{number}}.json", number=range({JOBS})),


rule hold:
    output:
        held="{{number}}.json",
    log:
        "logs/{{number}}.log",
    resources:
        gpu=1,
    script:
        "hold.py"
"""
# The jobs of both workflows wait for each other once, so that they want the devices together.
SCRIPT = """
import json, time
from pathlib import Path
from brainfed.scripting import job

begun = Path("..") / "begun"
begun.mkdir(exist_ok=True)
(begun / Path.cwd().name).touch()
while len(list(begun.iterdir())) < 2:
    time.sleep(0.02)
with job(snakemake, gpu=True) as running:
    start = time.monotonic_ns()
    time.sleep(0.5)
    stay = [*running.lease.uuids, start, time.monotonic_ns()]
    Path(snakemake.output.held).write_text(json.dumps(stay))
"""


def begin(folder: Path, environment: dict[str, str], gpus: int) -> "subprocess.Popen[str]":
    """Start a workflow that has a temporary folder of its own."""
    (folder / "tmp").mkdir(parents=True)
    (folder / "Snakefile").write_text(SNAKEFILE)
    (folder / "hold.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "snakemake", "--cores", "4", "--resources", f"gpu={gpus}"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(
        command, cwd=folder, env=environment | {"TMPDIR": str(folder / "tmp")}, text=True, **streams
    )


def test_two_workflows_that_share_gpus_differently_share_out_the_devices(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "SLURM_", "BRAINFED_"))}
    path = os.pathsep.join([str(write_fake_torch(tmp_path / "torch")), str(Path(brainfed.__file__).parents[1])])
    driver = FakeDriver(tmp_path, ["GPU-aaaa-1", "GPU-bbbb-2"])
    environment = kept | driver.environment | {"PYTHONPATH": path}
    runs = {
        "alone": begin(tmp_path / "alone", environment, gpus=2),
        "shares": begin(tmp_path / "shares", environment | {"BRAINFED_JOBS_PER_GPU": "2"}, gpus=4),
    }
    for run in runs.values():
        output, _ = run.communicate(timeout=HANGS_AFTER_S)
        assert run.returncode == 0, output
    stays = [
        (name, *json.loads((tmp_path / name / f"{number}.json").read_text())) for name in runs for number in range(JOBS)
    ]
    together = [
        (one, other)
        for one, other in combinations(stays, 2)
        if one[1] == other[1] and one[2] < other[3] and other[2] < one[3]
    ]
    assert {name for pair in together for name, *_ in pair} <= {"shares"}
    assert not [three for three in combinations(stays, 3) if all(pair in together for pair in combinations(three, 2))]
    assert {stay[1] for stay in stays} == set(driver.uuids)
