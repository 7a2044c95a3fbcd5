"""The lease on a machine with GPUs: training under it, and the memory of its processes as the driver reports it."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

import brainfed

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU on this machine"),
    pytest.mark.skipif("SLURM_JOB_ID" in os.environ, reason="inside a SLURM job its allocation counts"),
]

PACKAGE = Path(brainfed.__file__).parents[1]
TESTS = Path(__file__).parents[3]
SCRIPT = """
import json, sys
from types import SimpleNamespace
from brainfed.scripting import job
snakemake = SimpleNamespace(log=[], params={}, input={}, output=[],
    resources={"gpu": int(sys.argv[1])}, scriptdir=sys.argv[2])
with job(snakemake, gpu=True) as running:
    import torch
"""
TRAIN = """
from brainfed.evaluation._metrics import metrics
from brainfed.methods.gcn.declaration import FedGCNSettings
from brainfed.methods.gcn.train import train_fedgcn as train
from brainfed.runtime.jobs import Run
from support.samples.method_inputs import diagnosis_of, method_inputs

inputs = method_inputs(240, 400, effect=0.3)
outcome = train(inputs, FedGCNSettings(rounds=10, local_epochs=5, learning_rate=0.001), Run(running.device))
results = [
    metrics(diagnosis_of(inputs)[mask], outcome.scores[..., 1][fold][mask], 0.5)
    for fold, mask in ((fold, inputs.tested(fold)) for fold in range(inputs.folds))
]
print(json.dumps({"metrics": results, "uuids": running.lease.uuids, "timing": running.timing()}))
"""
HOLD = """
share = float(sys.stdin.readline())
free, total = torch.cuda.mem_get_info()
block = torch.empty(int(share * total), dtype=torch.uint8, device="cuda:0")
print(json.dumps({"uuids": running.lease.uuids, "devices": torch.cuda.device_count()}), flush=True)
sys.stdin.read()
"""
STRANGER = """
import sys, torch
free, total = torch.cuda.mem_get_info()
block = torch.empty(int(0.6 * total), dtype=torch.uint8, device="cuda:0")
print(flush=True)
sys.stdin.read()
"""


def start(source, *arguments, environment):
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    paths = {"PYTHONPATH": os.pathsep.join([str(PACKAGE), str(TESTS)])}
    command = [sys.executable, "-c", source, *arguments]
    return subprocess.Popen(command, text=True, env=os.environ | paths | environment, **streams)


def start_job(body, gpus, environment):
    source = SCRIPT + textwrap.indent(body, "    ")
    return start(source, str(gpus), str(PACKAGE / "scripts"), environment=environment)


@pytest.fixture
def one_gpu(tmp_path):
    """The first GPU alone, and lock files of this test's own."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    return {"CUDA_VISIBLE_DEVICES": first, "BRAINFED_LOCKS": str(tmp_path / "locks"), "BRAINFED_JOBS_PER_GPU": "2"}


def test_fedgcn_on_a_leased_gpu_has_the_cpu_s_metrics(one_gpu):
    results = {}
    for gpus in (0, 1):
        output, errors = start_job(TRAIN, gpus, one_gpu).communicate(timeout=300)
        assert output, errors
        results[gpus] = json.loads(output.splitlines()[-1])
    assert (len(results[0]["uuids"]), len(results[1]["uuids"])) == (0, 1)
    assert "peak_gpu_memory_mb" not in results[0]["timing"]
    assert results[1]["timing"]["peak_gpu_memory_mb"] > 0
    for cpu, gpu in zip(results[0]["metrics"], results[1]["metrics"], strict=True):
        assert gpu == pytest.approx(cpu, abs=1e-3)


def test_two_jobs_share_a_gpu_though_the_first_has_most_of_its_memory(one_gpu):
    jobs = []
    try:
        for share in (0.6, 0.01):
            jobs.append(start_job(HOLD, 1, one_gpu))
            jobs[-1].stdin.write(f"{share}\n")
            jobs[-1].stdin.flush()
            results = json.loads(jobs[-1].stdout.readline())
            assert (len(results["uuids"]), results["devices"]) == (1, 1)
    finally:
        for job in jobs:
            job.kill()
            job.communicate()


def test_memory_of_a_stranger_is_an_error(one_gpu):
    stranger = start(STRANGER, environment=one_gpu)
    try:
        assert stranger.stdout.readline() == "\n"
        job = start_job("print('begun')", 1, one_gpu)
        output, errors = job.communicate(timeout=300)
        assert (job.returncode, output) == (1, "")
        assert "more than 50% of the memory is taken by other programs" in errors
    finally:
        stranger.kill()
        stranger.communicate()
