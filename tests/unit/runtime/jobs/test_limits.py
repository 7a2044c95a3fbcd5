"""Limits of memory and threads (`ulimit`), and memory that runs out: a job works, or ends with a sentence."""

import os
import re
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

import brainfed
from brainfed.runtime import UserError
from brainfed.runtime.jobs import require_room
from brainfed.runtime.jobs._memory import LEAST_MB, LEAST_OF_A_THREAD_MB, is_out_of_memory, out_of_memory
from brainfed.scripting._job import REMEDIES, smaller

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of other systems are others")

LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_{kind}, (int(given["limit"]) << 20,) * 2)
snakemake.rule = "a_rule"

def wait_for_the_sentence():
    import pathlib, time
    log = pathlib.Path(given["log"][0])
    for _ in range(200):
        if "without a sentence" in log.read_text():
            os._exit(0)
        time.sleep(0.1)
    os.write(2, b"nobody spoke while the child lived\\n")
    os._exit(0)
"""
DEATHS = {
    "OpenBLAS without memory": "print('OpenBLAS error: giving up.', file=sys.stderr); os._exit(1)",
    "C++": "os.abort()",
    "killed": "os.kill(os.getpid(), 9)",
    "a child has the pipe": "os.fork() and os._exit(1); wait_for_the_sentence()",
}


def run(scripts, mebibytes, body, kind="AS"):
    scripts.given["limit"] = mebibytes
    return scripts.run(LIMITED.format(kind=kind) + f"with job(snakemake):\n    {body}")


@pytest.mark.parametrize(
    ("death", "kind", "option"), [*((death, "AS", "v") for death in DEATHS), ("killed", "DATA", "d")]
)
def test_a_job_that_a_library_ends_has_a_sentence(scripts, death, kind, option):
    ended = run(scripts, 1500, DEATHS[death], kind)
    said = ended.stderr.splitlines()[-1]
    assert ended.code
    assert said.startswith("a_rule: the job ended without a sentence")
    assert f"limited to 1500 MiB (ulimit -{option})" in said
    assert said in ended.log
    assert "nobody spoke" not in ended.stderr


@pytest.mark.full("Each of many limits takes two seconds.")
@pytest.mark.parametrize(("mebibytes", "threads"), [(1000, 1), (1500, 1), (2000, 16), (4000, 16)])
def test_libraries_work_or_end_with_a_sentence(scripts, mebibytes, threads):
    """V8 draws charts; it dies of every such limit."""
    scripts.given["params"] = {"threads": threads}
    for body in (
        "import numpy, pyarrow.parquet; numpy.linalg.eigh(numpy.eye(500))",
        "import torch; torch.ones(500, 500) @ torch.ones(500, 500)",
        "import vl_convert; vl_convert.vega_to_svg({'marks': []})",
    ):
        ended = run(scripts, mebibytes, body)
        assert ended.code == 0 or f"limited to {mebibytes} MiB (ulimit -v)" in ended.stderr.splitlines()[-1], body
        assert ended.code or "vl_convert" not in body or not ended.stderr


def test_a_limit_under_which_nothing_can_be_imported_is_refused_at_once(scripts):
    ended = run(scripts, LEAST_MB, "import numpy")
    assert (ended.code, ended.stderr.count("\n")) == (1, 1)
    assert ended.stderr.startswith("a_rule: expected room for the libraries and 1 thread(s), at least ")
    assert (
        f"{LEAST_MB + LEAST_OF_A_THREAD_MB} MiB, found that the address space of a process is limited" in ended.stderr
    )


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise ImportError('x.so: failed to map segment from shared object')", "a_rule: memory has run out (x.so"),
        ("raise SystemError('error return without exception set')", "SystemError: error return"),
        ("raise type('PanicException', (BaseException,), {})('Resource temporarily unavailable')", "a_rule: a thread"),
    ],
)
def test_an_error_under_a_limit_names_the_limit(scripts, body, words):
    ended = run(scripts, 1500, body)
    assert ended.code == 1
    assert ended.stderr.startswith(words) and ended.stderr.count("\n") == 1
    assert "limited to 1500 MiB (ulimit -v)" in ended.stderr


def test_openblas_without_threads_is_no_interrupt(scripts):
    """It sends its process a SIGINT where it cannot start a thread."""
    full = "resource.setrlimit(resource.RLIMIT_AS, (int(open('/proc/self/statm').read().split()[0]) * 4096,) * 2)"
    ended = run(scripts, 1500, f"{full}; os.kill(os.getpid(), {signal.SIGINT:d})")
    assert ended.code == 1
    assert "a_rule: a thread could not be started (can't start new thread); the address space" in ended.stderr
    assert "stopped by" not in ended.stderr


@pytest.mark.parametrize("body", ["pass", "raise UserError('sub-01: no age.')", "raise SystemExit(3)"])
def test_a_job_that_ends_by_itself_is_not_said_to_be_ended(scripts, body):
    ended = run(scripts, 1500, body)
    assert "without a sentence" not in ended.stderr + ended.log


@pytest.mark.parametrize("body", ["pass", "os._exit(1)"])
def test_a_kernel_that_tells_no_end_of_a_process_has_nothing_said_too_early(scripts, body):
    """As those before 5.3, and containers that forbid the call."""
    scripts.given["limit"] = 1500
    absent = "def absent(pid): raise OSError(38, 'Function not implemented')\nos.pidfd_open = absent\n"
    work = "__import__('time').sleep(0.5); spoken = 'without a sentence' in open(given['log'][0]).read()"
    ended = scripts.run(
        LIMITED.format(kind="AS") + f"{absent}with job(snakemake):\n    {work}; print(spoken, flush=True); {body}"
    )
    assert ended.stdout == "False\n"
    assert ("without a sentence" in ended.stderr) == (body != "pass")


@pytest.mark.parametrize("hangs", [False, True])
def test_a_job_that_is_stopped_is_not_said_to_be_ended(scripts, hangs):
    scripts.given["limit"] = 1500
    job = scripts.start(
        LIMITED.format(kind="AS")
        + """
import ctypes, time
from brainfed.runtime.jobs import _stopping as stopping
stopping.PATIENCE = 0.2
library, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
with job(snakemake):
    print("runs", flush=True)
    """
        + ("[library.pthread_mutex_lock(mutex) for _ in range(2)]" if hangs else "time.sleep(3600)")
    )
    assert job.stdout.readline() == "runs\n"
    job.send_signal(signal.SIGTERM)
    _, stderr = job.communicate(timeout=300)
    assert job.returncode == 130
    assert stderr.startswith("stopped by SIGTERM before the end") and stderr.count("\n") == 1


def test_threads_that_cannot_be_started_are_refused_at_once(monkeypatch):
    start, started = threading.Thread.start, []

    def few(thread):
        if len(started) == 4:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", few)
    with pytest.raises(UserError, match=r"^a_rule: expected 10 threads that can be started, found room for fewer") as e:
        require_room("a_rule", 2)
    assert "run fewer jobs at once (--cores 1)" in str(e.value)
    assert not any(thread.is_alive() for thread in started)


@pytest.mark.skipif(os.getuid() != 0, reason="starts a process of another user")
def test_a_user_who_may_start_no_thread_has_a_sentence(scripts):
    scripts.given |= {"log": [], "limit": 3}
    ended = scripts.run(
        """
        import resource
        resource.setrlimit(resource.RLIMIT_NPROC, (3, 3))
        os.setuid(2_000_001)
        snakemake.rule = "a_rule"
        with job(snakemake):
            pass
        """
    )
    assert ended.code == 1
    assert "threads of a user are limited to 3 (ulimit -u)" in ended.stderr and ended.stderr.count("a_rule:") == 1


TOO_MUCH = 10**15


def message(error, rule, entry, *memory):
    return out_of_memory(error, rule, smaller(rule, entry), *memory)


CUDA = torch.OutOfMemoryError(
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.00 GiB is free."
)


def numpy_s():
    with pytest.raises(MemoryError) as raised:
        np.ones(TOO_MUCH)
    return raised.value


def torch_s():
    with pytest.raises(RuntimeError) as raised:
        torch.ones(TOO_MUCH)
    return raised.value


@pytest.mark.parametrize(
    "error",
    [numpy_s, torch_s, lambda: CUDA, MemoryError, lambda: RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED")],
)
def test_memory_that_ran_out_is_recognised_in_every_library(error):
    assert is_out_of_memory(error())


@pytest.mark.parametrize("error", [ValueError("shapes"), UserError("sub-01: no age."), RuntimeError("CUDA error: x")])
def test_other_errors_are_not_out_of_memory(error):
    assert not is_out_of_memory(error)


def test_on_the_cpu_the_sentence_names_the_memory_held_and_the_remedy():
    sentence = out_of_memory(
        numpy_s(), "train_method", smaller("train_method", "brainfed.methods.gcn.train:train_fedgcn"), 1234.5
    )
    assert sentence.startswith("train_method: memory has run out (Unable to allocate 7.11 PiB for an array")
    for part in (
        "this job held 1,23",
        "--set-resources train_method:mem_mb=",
        "`hidden`",
        "run the same command again",
    ):
        assert part in sentence


@pytest.mark.parametrize(("peak", "asked", "more"), [(1234.5, 0, 3000), (23_000.0, 24_000, 48_000), (10.0, 0, 2000)])
def test_the_advised_memory_is_more_than_the_job_had(peak, asked, more):
    sentence = message(numpy_s(), "fuse_graph", "", peak, asked)
    assert f"--set-resources fuse_graph:mem_mb={more})" in sentence


def test_on_a_gpu_the_sentence_offers_the_cpu():
    sentence = out_of_memory(
        CUDA, "train_generator", smaller("train_generator", "brainfed.inpainting.fedni.training:train"), 1.0
    )
    for part in (
        "(CUDA out of memory, Tried to allocate 2.00 GiB)",
        "`features: ",
        "`split.count`",
        "(BRAINFED_JOBS_PER_GPU)",
        "--resources gpu=0",
    ):
        assert part in sentence
    assert "mem_mb" not in sentence


def test_the_entry_point_decides_where_its_rule_runs_several():
    sage = out_of_memory(
        CUDA, "train_generator", smaller("train_generator", "brainfed.inpainting.fedsage.training:train"), 1.0
    )
    assert "`inpainting.fgen_width`" in sage and "split.count" not in sage


@pytest.mark.parametrize("rule", ["train_generator", "draw_forest", "write_report", "join_fitted_views"])
def test_a_rule_that_another_workflow_renames_keeps_its_remedy(rule):
    assert smaller(f"brainfed_{rule}_again", "") == smaller(rule, "") != smaller("other", "")


def test_every_rule_has_a_remedy():
    rules = Path(brainfed.__file__).parents[1] / "rules"
    text = "\n".join(path.read_text() for path in rules.glob("*.smk"))
    named = set(re.findall(r"^(?:rule|use rule \w+ as) (\w+)\b", text, re.MULTILINE))
    small = {
        "simulate_atlas",
        "simulate_participants",
        "simulate_thickness",
        "ingest_phenotypes",
        "ingest_columns",
        "measure_quality",
        "include_subjects",
        "list_issues",
        "models",
        "write_card",
        "split_subjects",
    }
    # Downloads hold one file at a time; export_bids stands for export_cohort of every cohort and has no job.
    rest = named - small - {"fetch_abide", "fetch_atlases", "fetch_tudatasets", "export_bids"}
    assert {rule for rule in rest if not rule.startswith("draw_")} <= set(REMEDIES)
    assert {key.split()[0] for key in REMEDIES} - named == {"simulate_scans", "draw_"}


@pytest.mark.parametrize("text", ["can't start new thread", "Unknown error: Failed to launch worker thread: no"])
def test_a_thread_that_cannot_be_started_is_said(text):
    error = RuntimeError(text)
    assert is_out_of_memory(error)
    sentence = out_of_memory(error, "train_method", "fewer data", 100.0)
    assert sentence.startswith(f"train_method: a thread could not be started ({text})")
    assert "run fewer jobs at once (--cores 1)" in sentence
