"""Answers of the driver, errors of one that is broken, hangs or has lost a device, and a run without GPUs."""

import os
import subprocess
import sys

import pytest

from brainfed.runtime import UserError
from brainfed.runtime.devices import _driver as driver
from brainfed.runtime.devices import announce, gpus
from brainfed.runtime.devices._driver import VARIABLE, memory_of_processes, query
from support.processes.fake_driver import FakeDriver

UUIDS = ("GPU-aaaa-1", "GPU-bbbb-2", "GPU-cccc-3")
ON_CPU = "run with --resources gpu=0 to use the CPU"


@pytest.fixture
def fake(tmp_path, monkeypatch):
    gpus = FakeDriver(tmp_path, UUIDS)
    monkeypatch.setenv("BRAINFED_NVIDIA_SMI", str(gpus.program))
    return gpus


def test_devices_come_in_the_driver_s_order_with_their_memory(fake):
    fake.uses(10, "[N/A]", 30)
    listed = [(gpu.index, gpu.uuid, gpu.used, gpu.total) for gpu in query()]
    assert listed == [("0", UUIDS[0], 10, 80_000), ("1", UUIDS[1], 0, 0), ("2", UUIDS[2], 30, 80_000)]


def test_memory_of_a_process_is_summed_over_its_entries(fake):
    fake.names((UUIDS[0], 7, 100), (UUIDS[0], 7, 20), (UUIDS[1], 7, 3), (UUIDS[1], 8, "[N/A]"))
    assert memory_of_processes() == {(UUIDS[0], 7): 120, (UUIDS[1], 7): 3}


def test_a_driver_that_lists_no_process_is_no_error(fake, monkeypatch):
    fake.breaks("1, 2, 3", 6)
    assert memory_of_processes() == {}
    monkeypatch.setenv("BRAINFED_NVIDIA_SMI", "/absent/nvidia-smi")
    assert memory_of_processes() == {}


def test_a_broken_driver_is_an_error(fake):
    fake.breaks("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", 9)
    with pytest.raises(UserError, match=rf"broken \(exit code 9: NVIDIA-SMI has failed .*{ON_CPU}"):
        query()


def test_a_driver_that_hangs_is_an_error(fake, monkeypatch):
    fake.says("exec sleep 3600")
    monkeypatch.setattr(driver, "ANSWER_SECONDS", 0.2)
    sentence = rf"the NVIDIA driver gave no answer in 0\.2 s; .*restart of the machine\), or {ON_CPU}"
    with pytest.raises(UserError, match=sentence):
        query()


@pytest.mark.parametrize(("answer", "problem"), [("", "lists no device;"), ("no such field", "expected index, uuid")])
def test_a_driver_that_answers_otherwise_is_an_error(fake, answer, problem):
    fake.breaks(answer, 0)
    with pytest.raises(UserError, match=problem):
        query()


def test_a_device_that_the_driver_has_lost_is_left_out(fake, caplog):
    fake.uses("[GPU is lost]", "[GPU requires reset]", 0)
    with caplog.at_level("INFO"):
        assert [gpu.uuid for gpu in query()] == [UUIDS[2]]
    assert "left out, the driver has lost it: 0, GPU-aaaa-1, [GPU is lost], 80000" in caplog.messages


def test_a_machine_that_has_lost_its_only_device_says_so(fake):
    fake.answer.write_text("0, [Unknown Error], [Unknown Error], [Unknown Error]\n")
    with pytest.raises(UserError, match=rf"lists no device that works \(0, \[Unknown Error\], .*{ON_CPU}"):
        query()


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
    source = "from brainfed.runtime.devices import gpus; print(gpus(2))"
    done = subprocess.run([sys.executable, "-c", source], env=os.environ, capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
