"""Leases of GPUs, on fake devices: a script answers in place of the driver's nvidia-smi."""

import os
import signal
import subprocess
import sys
import textwrap
from contextlib import ExitStack
from itertools import pairwise

import pytest

from brainfed.runtime import UserError
from brainfed.runtime.devices import JOBS_PER_GPU, lease, missing_gpu, unusable_gpu
from brainfed.runtime.devices import _driver as driver
from brainfed.runtime.devices._driver import VISIBLE
from brainfed.runtime.devices._lease import lock_folder
from support.processes.awaited import HANGS_AFTER_S
from support.processes.fake_driver import FakeDriver, refused

UUIDS = ("GPU-aaaa-1", "GPU-bbbb-2", "GPU-bbcc-3")


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Three free devices; nothing of the real machine is seen."""
    gpus = FakeDriver(tmp_path, UUIDS)
    for name in (VISIBLE, "SLURM_JOB_ID", JOBS_PER_GPU):
        monkeypatch.delenv(name, raising=False)
    for name, value in gpus.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    return gpus


@pytest.fixture
def bare(fake, monkeypatch, tmp_path):
    """A machine without any driver."""
    monkeypatch.delenv("BRAINFED_NVIDIA_SMI")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(driver, "DRIVER_FOLDER", tmp_path / "no-driver")


LEASES = "with lease(1, patience=patience) as leased:\n    print(*leased.uuids)\n"


def start(body, *arguments):
    source = (
        "import os, pathlib, sys, time\n"
        "from brainfed.runtime.devices._lease import Patience; from brainfed.runtime.devices import lease\n"
        "patience = Patience(poll=0.02, grace=0.1)\n" + textwrap.dedent(body)
    )
    command = [sys.executable, "-c", source, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_eight_jobs_on_three_devices_never_share_one(fake, tmp_path):
    body = """
        folder = pathlib.Path(sys.argv[1])
        (folder / f"ready-{os.getpid()}").touch()
        while len(list(folder.glob("ready-*"))) < 8:
            time.sleep(0.01)
        with lease(1, patience=patience) as leased:
            begun = time.monotonic_ns()
            time.sleep(0.1)
            with (folder / leased.uuids[0]).open("a") as file:
                file.write(f"{begun} {time.monotonic_ns()} {os.environ['CUDA_VISIBLE_DEVICES']} {leased.device}\\n")
    """
    jobs = [start(body, tmp_path) for _ in range(8)]
    assert [job.wait(timeout=HANGS_AFTER_S) for job in jobs] == [0] * 8
    held = 0
    for uuid in UUIDS:
        stays = sorted(line.split() for line in (tmp_path / uuid).read_text().splitlines())
        held += len(stays)
        assert all(stay[2:] == [uuid, "cuda:0"] for stay in stays)
        assert all(int(one[1]) < int(following[0]) for one, following in pairwise(stays))
    assert held == 8


def test_leases_held_together_are_of_different_devices(fake, monkeypatch):
    with lease(1) as one:
        # Another process would not see what this one made visible to itself.
        monkeypatch.delenv(VISIBLE)
        with lease(1) as other:
            assert (one.uuids, other.uuids) == (("GPU-aaaa-1",), ("GPU-bbbb-2",))
        monkeypatch.setenv(VISIBLE, "GPU-aaaa-1")


def test_several_devices_in_one_lease(fake):
    with lease(2) as leased:
        assert leased.uuids == ("GPU-aaaa-1", "GPU-bbbb-2")
        assert os.environ[VISIBLE] == "GPU-aaaa-1,GPU-bbbb-2"
    assert VISIBLE not in os.environ


def test_jobs_that_want_all_devices_take_turns(fake):
    body = "with lease(3, patience=patience) as leased:\n    print(len(leased.uuids))\n    time.sleep(0.05)\n"
    jobs = [start(body) for _ in range(4)]
    assert [job.communicate(timeout=HANGS_AFTER_S)[0] for job in jobs] == ["3\n"] * 4


def test_a_killed_job_gives_its_device_back(fake):
    fake.uses(0)
    holder = start("with lease(1, purpose='holder'):\n    print('held', flush=True)\n    time.sleep(3600)\n")
    assert holder.stdout.readline() == "held\n"
    waiting = start(LEASES)
    said = f"waiting for 1 of 1 GPU(s), other jobs hold them: GPU-aaaa-1 pid {holder.pid} (holder)\n"
    assert waiting.stderr.readline() == said
    os.kill(holder.pid, signal.SIGKILL)
    assert waiting.communicate(timeout=HANGS_AFTER_S)[0] == "GPU-aaaa-1\n"
    holder.communicate()


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        ("2", ["GPU-bbcc-3"]),
        ("2,0", ["GPU-bbcc-3", "GPU-aaaa-1"]),
        ("GPU-bbbb-2", ["GPU-bbbb-2"]),
        ("GPU-bbc", ["GPU-bbcc-3"]),
        ("1,1", ["GPU-bbbb-2"]),
        ("1,-1,2", ["GPU-bbbb-2"]),
        ("MIG-dddd", ["MIG-dddd"]),
    ],
)
def test_only_visible_devices_are_leased(fake, monkeypatch, visible, expected):
    monkeypatch.setenv(VISIBLE, visible)
    with ExitStack() as held:
        leased = []
        for _ in expected:
            leased.extend(held.enter_context(lease(1)).uuids)
            monkeypatch.setenv(VISIBLE, visible)
        assert leased == expected


@pytest.mark.parametrize("visible", ["3", "GPU-cccc", "GPU-bb", "first"])
def test_a_visible_device_that_is_not_there_is_named(fake, monkeypatch, visible):
    monkeypatch.setenv(VISIBLE, visible)
    refused(rf"'{visible}' is no device of this machine, it has 0 \(GPU-aaaa-1\)")


def test_a_device_taken_by_strangers_is_passed_over(fake):
    fake.uses(60_000, 39_000, 60_000)
    with lease(1) as leased:
        assert leased.uuids == ("GPU-bbbb-2",)


def test_all_devices_taken_by_strangers_is_an_error(fake):
    fake.uses(60_000, 50_000, 70_000)
    sentence = r"50% of the memory is taken by other programs; .*run with --resources gpu=0"
    refused(sentence)
    fake.uses(0, 0, 0)
    with lease(1) as leased:
        assert leased.uuids == ("GPU-aaaa-1",)


def test_too_few_devices_that_strangers_leave_is_an_error(fake):
    fake.uses(0, 0, 70_000)
    refused("GPU-bbcc-3: more than 50%", 3)


def test_memory_that_jobs_of_ours_use_is_waited_for(fake):
    fake.uses(0)
    with lease(1):
        fake.uses(70_000)
        waiting = start(LEASES)
        assert waiting.stderr.readline().startswith("waiting for 1 of 1 GPU(s)")
        fake.uses(0)
    assert waiting.communicate(timeout=HANGS_AFTER_S)[0] == "GPU-aaaa-1\n"


def test_a_device_whose_memory_is_not_reported_may_be_leased(fake):
    fake.uses("[N/A]", 0)
    with lease(1) as leased:
        assert leased.uuids == ("GPU-aaaa-1",)


def test_more_devices_than_there_are_is_an_error(fake):
    refused(r"4 GPU\(s\) are asked for, 3 can be seen", 4)


def test_a_driver_without_its_program_is_an_error(bare, monkeypatch, tmp_path):
    monkeypatch.setattr(driver, "DRIVER_FOLDER", tmp_path)
    refused(r"nvidia-smi: the GPUs cannot be listed .*BRAINFED_NVIDIA_SMI")


def test_visible_devices_without_a_driver_are_an_error(bare, monkeypatch):
    monkeypatch.setenv(VISIBLE, "0")
    refused("cannot be listed")


def test_no_gpu_asked_for_is_the_cpu(fake):
    with lease(0) as leased:
        assert (leased.device, leased.uuids) == ("cpu", ())
        assert VISIBLE not in os.environ


def test_a_machine_without_gpu_is_the_cpu_and_says_so(bare):
    with lease(1) as leased:
        assert leased.device == "cpu"
        assert leased.message == missing_gpu() == "CPU: this machine has no NVIDIA driver"


@pytest.mark.parametrize("visible", ["", "-1", "NoDevFiles"])
def test_hidden_gpus_are_the_cpu_and_say_so(fake, monkeypatch, visible):
    monkeypatch.setenv(VISIBLE, visible)
    with lease(1) as leased:
        assert leased.device == "cpu"
        assert "hides the GPUs" in leased.message


def test_torch_must_come_after_the_lease(fake, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", sys)
    with pytest.raises(RuntimeError, match="before torch"), lease(1):
        pass
    with lease(0) as leased:
        assert leased.device == "cpu"


def test_a_slurm_allocation_needs_no_driver_that_answers(bare, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    monkeypatch.setenv(VISIBLE, "1")
    with lease(1) as leased:
        assert (leased.device, leased.uuids, leased.message) == ("cuda:0", ("1",), "GPU 1 as SLURM allocated")
        assert os.environ[VISIBLE] == "1"


def test_the_warning_before_a_run_in_an_allocation_is_the_error_of_its_jobs(bare, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    monkeypatch.setenv(VISIBLE, "0")
    assert unusable_gpu() is None
    monkeypatch.setenv(VISIBLE, "")
    with pytest.raises(UserError) as raised, lease(1):
        pass
    assert unusable_gpu() == str(raised.value)


@pytest.mark.parametrize("visible", ["0,2", "0"])
def test_jobs_inside_one_slurm_allocation_share_it_out(fake, monkeypatch, visible):
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    monkeypatch.setenv(VISIBLE, visible)
    with lease(1) as one:
        assert one.uuids == ("0",)
        monkeypatch.setenv(VISIBLE, visible)
        other = start(LEASES)
        if visible == "0":
            assert other.stderr.readline().startswith("waiting for 1 of 1 GPU(s)")
        else:
            assert other.communicate(timeout=HANGS_AFTER_S)[0] == "2\n"
    if visible == "0":
        assert other.communicate(timeout=HANGS_AFTER_S)[0] == "0\n"


def test_devices_of_two_slurm_jobs_have_equal_numbers_and_are_others(fake, monkeypatch):
    monkeypatch.setenv(VISIBLE, "0")
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    with lease(1) as one:
        monkeypatch.setenv("SLURM_JOB_ID", "13")
        monkeypatch.setenv(VISIBLE, "0")
        with lease(1) as other:
            assert one.uuids == other.uuids == ("0",)


def test_a_past_allocation_leaves_no_lock_files(fake, monkeypatch):
    def names():
        return {path.name for path in lock_folder().iterdir()}

    monkeypatch.setenv(VISIBLE, "0")
    for number in ("12", "13"):
        monkeypatch.setenv("SLURM_JOB_ID", number)
        monkeypatch.setenv(VISIBLE, "0")
        with lease(1):
            assert names() == {"gate.lock", f"slurm-{number}-0.0.lock"}
            monkeypatch.setenv("SLURM_JOB_ID", "14")
            monkeypatch.setenv(VISIBLE, "0")
            with lease(1):
                assert names() == {"gate.lock", f"slurm-{number}-0.0.lock", "slurm-14-0.0.lock"}


@pytest.mark.parametrize("visible", [None, "", "0"])
def test_a_slurm_allocation_that_is_too_small_is_an_error(fake, monkeypatch, visible):
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    if visible is not None:
        monkeypatch.setenv(VISIBLE, visible)
    message = r"SLURM job 12: the rule asks for 2 GPU\(s\), SLURM allocated [01] .* with BRAINFED_GPUS=none in"
    refused(message, 2)


def test_a_lock_folder_that_cannot_be_used_is_named(fake, monkeypatch, tmp_path):
    monkeypatch.setenv("BRAINFED_LOCKS", str(fake.answer / "below-a-file"))
    refused("below-a-file: lock files of GPUs cannot be kept here")
