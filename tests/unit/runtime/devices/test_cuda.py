"""Errors of CUDA at the start of a job or in the middle of it: each names the remedy."""

import json
import sys
from types import SimpleNamespace

import pytest

from brainfed.runtime import UserError
from brainfed.runtime.devices import using_cuda
from brainfed.runtime.devices._driver import check_cuda, lost_device
from support.processes.fake_driver import FakeDriver
from support.processes.fake_torch import write_fake_torch

UUID = "GPU-aaaa-1"


@pytest.fixture
def jobs(scripts, tmp_path):
    """GPU jobs on one fake device, with a fake torch."""
    scripts.see(FakeDriver(tmp_path, [UUID]), write_fake_torch(tmp_path / "torch"))
    return scripts


def failing_torch(sentence):
    def zeros(*_, **__):
        raise RuntimeError(f"{sentence}\nCUDA kernel errors might be asynchronously reported at some other API call.")

    return SimpleNamespace(__version__="2.13.0+cu130", version=SimpleNamespace(cuda="13.0"), zeros=zeros)


def test_a_torch_without_cuda_is_named(monkeypatch):
    without = SimpleNamespace(__version__="2.13.0+cpu", version=SimpleNamespace(cuda=None))
    monkeypatch.setitem(sys.modules, "torch", without)
    sentence = (
        r"GPU GPU-aaaa-1: the installed torch 2\.13\.0\+cpu is built without CUDA; install a CUDA build of torch that "
        r"the driver supports, or run with --resources gpu=0 to use the CPU\."
    )
    with pytest.raises(UserError, match=sentence):
        check_cuda([UUID])


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        (
            "The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver",
            "update the driver, or install a build of torch for an older CUDA",
        ),
        (
            "Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling "
            "NumCudaDevices() that might have already set an error? Error 803: system has unsupported display driver / "
            "cuda driver combination",
            "the driver was changed under a running system: restart it",
        ),
        (
            "Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was attempted on non "
            "supported HW",
            "the driver was changed under a running system: restart it",
        ),
        (
            "Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
            "have nvidia-fabricmanager started",
        ),
        ("No CUDA GPUs are available", "the device is gone"),
        ("Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU", "in a container"),
        ("CUDA error: CUDA-capable device(s) is/are busy or unavailable", "unset BRAINFED_JOBS_PER_GPU"),
        ("CUDA error: no kernel image is available for execution on the device", "for this generation of GPUs"),
        ("CUDA error: out of memory", "its memory is full: lower BRAINFED_JOBS_PER_GPU"),
        ("CUDA error: something new", "install a CUDA build of torch that the driver supports"),
    ],
)
def test_an_error_at_the_start_of_cuda_names_the_remedy(monkeypatch, message, remedy):
    monkeypatch.setitem(sys.modules, "torch", failing_torch(message))
    with pytest.raises(UserError) as caught:
        check_cuda([UUID])
    sentence = str(caught.value)
    assert sentence.startswith(f"GPU {UUID}: the installed torch 2.13.0+cu130 cannot use it ({message});")
    assert remedy in sentence
    assert sentence.endswith(", or run with --resources gpu=0 to use the CPU.")
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (RuntimeError("CUDA error: unspecified launch failure\nCUDA kernel errors"), "dmesg, lines with Xid"),
        (RuntimeError("CUDA error: uncorrectable ECC error encountered"), "dmesg, lines with Xid"),
        (RuntimeError("CUDA error: unknown error"), "dmesg, lines with Xid"),
        (RuntimeError("CUDA error: no CUDA-capable device is detected"), "restart the machine if it is not listed"),
    ],
)
def test_an_error_of_a_failing_device_names_the_remedy(error, remedy):
    sentence = lost_device(error, [UUID]) or ""
    assert sentence.startswith(f"GPU {UUID}: {str(error).splitlines()[0]}; ")
    assert remedy in sentence
    assert sentence.endswith(
        "name other devices in CUDA_VISIBLE_DEVICES, or run with --resources gpu=0 to use the CPU."
    )


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("CUDA error: device-side assert triggered"),
        RuntimeError("CUDA error: an illegal memory access was encountered"),
        RuntimeError("CUDA error: invalid configuration argument"),
        RuntimeError("CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling cublasSgemm"),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("mat1 and mat2 shapes cannot be multiplied"),
        RuntimeError(),
    ],
)
def test_a_bug_of_a_program_is_not_blamed_on_the_device(error):
    assert lost_device(error, [UUID]) is None


def test_without_a_device_none_is_blamed():
    with pytest.raises(RuntimeError, match="unknown error"), using_cuda([]):
        raise RuntimeError("CUDA error: unknown error")


def test_a_job_whose_device_fails_ends_in_one_sentence_and_keeps_the_traceback(jobs):
    done = jobs.run_in_job("raise RuntimeError('CUDA error: unspecified launch failure')")
    assert done.code == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(
        f"GPU {UUID}: CUDA error: unspecified launch failure; the device or its driver failed"
    )
    assert "Traceback (most recent call last)" in done.log
    assert done.log.endswith(done.stderr)


def test_a_job_on_a_broken_cuda_never_begins(jobs):
    jobs.environment["FAKE_CUDA"] = "CUDA error: system not yet initialized"
    done = jobs.run_in_job("print('begun')")
    assert (done.code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"GPU {UUID}: the installed torch 2.13.0+cu130 cannot use it (CUDA error: system")
    assert "Traceback" not in done.log


def test_timing_includes_the_memory_of_the_gpu(jobs):
    done = jobs.run_in_job("print(json.dumps(running.timing()))")
    timing = json.loads(done.stdout)
    assert timing["peak_gpu_memory_mb"] == 3.0
    assert timing["device"] == "cuda:0 (Fake H200)"
    assert done.stderr == ""


def test_a_waiting_job_names_the_log_of_the_holder(jobs):
    done = jobs.run_in_job("""
        import os, pathlib
        (place,) = pathlib.Path(os.environ["BRAINFED_LOCKS"]).glob("*.0.lock")
        print(place.read_text())
    """)
    assert json.loads(done.stdout)["purpose"] == str(jobs.log)
