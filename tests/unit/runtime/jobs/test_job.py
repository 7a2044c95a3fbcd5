"""Jobs: how a script begins and how it ends, seen from outside as Snakemake sees it."""

import json
import os
import signal

import pytest

from brainfed.runtime import file_digest, imported_versions, machine, versions
from support.processes.awaited import HANGS_AFTER_S, until_true
from support.processes.fake_driver import FakeDriver
from support.processes.fake_torch import write_fake_torch


def test_a_job_that_ends_well_says_nothing_on_stderr(scripts):
    ended = scripts.run("with job(snakemake) as running: print(running.device)")
    assert (ended.code, ended.stdout, ended.stderr) == (0, "cpu\n", "")


def test_the_first_log_line_names_host_device_and_threads(scripts):
    ended = scripts.run("with job(snakemake, gpu=True): print(__import__('platform').node())")
    host = ended.stdout.strip()
    first = ended.log.splitlines()[0]
    assert first.endswith(f"{host}: CPU: CUDA_VISIBLE_DEVICES='' hides the GPUs, 1 thread(s)")


def test_a_user_s_mistake_is_one_sentence(scripts):
    ended = scripts.run("with job(snakemake): raise UserError('sub-01: no age; add it.')")
    assert (ended.code, ended.stderr) == (1, "sub-01: no age; add it.\n")
    assert ended.log.endswith("sub-01: no age; add it.\n")
    assert "Traceback" not in ended.log


def test_a_bug_leaves_its_traceback_in_the_log(scripts):
    ended = scripts.run("with job(snakemake): raise ValueError('shapes\\n(3,) and (4,)')")
    assert ended.code == 1
    assert ended.stderr == f"ValueError: shapes (3,) and (4,); the traceback is in {scripts.log}\n"
    assert "Traceback (most recent call last)" in ended.log
    assert 'File "<string>", line 11, in <module>' in ended.log


def test_without_a_log_the_traceback_goes_to_stderr(scripts):
    scripts.given["log"] = []
    ended = scripts.run("with job(snakemake): raise ValueError('shapes')")
    assert ended.code == 1
    assert "Traceback (most recent call last)" in ended.stderr


def test_memory_that_runs_out_is_one_sentence(scripts):
    ended = scripts.run("""
        import numpy
        snakemake.rule = "train_method"
        with job(snakemake):
            try:
                numpy.ones(10**15)
            except MemoryError as error:
                raise UserError("graph.safetensors: not a whole file; delete it.") from error
    """)
    assert ended.code == 1
    assert ended.stderr.startswith("train_method: memory has run out (") and ended.stderr.count("\n") == 1
    assert "`hidden`" in ended.stderr and "delete" not in ended.stderr
    assert "Traceback" not in ended.log


def test_a_gpu_that_was_full_before_the_job_is_not_the_job_s_memory(scripts):
    ended = scripts.run("""
        from brainfed.runtime.devices import UnusableGpuError
        with job(snakemake):
            try:
                raise RuntimeError("CUDA error: out of memory")
            except RuntimeError as error:
                raise UnusableGpuError(f"GPU 0: torch cannot use it ({error}); its memory is full.") from error
    """)
    assert ended.code == 1
    assert ended.stderr == "GPU 0: torch cannot use it (CUDA error: out of memory); its memory is full.\n"
    assert "Traceback" not in ended.log


def test_the_memory_that_a_job_asked_for_decides_the_advice(scripts):
    scripts.given["resources"] = {"mem_mb": 9000}
    ended = scripts.run("with job(snakemake): raise MemoryError")
    assert "mem_mb=18000)" in ended.stderr


def test_a_rerun_writes_the_log_anew(scripts):
    scripts.run("with job(snakemake): raise UserError('old')")
    ended = scripts.run("with job(snakemake): pass")
    assert len(ended.log.splitlines()) == 1


@pytest.mark.parametrize(
    "how", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.full("Both have one handler."))]
)
def test_a_stopped_job_cleans_up(scripts, how, tmp_path):
    process = scripts.start("""
        import time
        from pathlib import Path
        from brainfed.runtime import atomic
        with job(snakemake), atomic(Path(given["log"][0]).with_name("scores")) as temporary:
            temporary.write_text("half")
            print("running", flush=True)
            time.sleep(3600)
    """)
    assert process.stdout.readline() == "running\n"
    process.send_signal(how)
    _, stderr = process.communicate(timeout=HANGS_AFTER_S)
    assert process.returncode == 130
    assert stderr.startswith(f"stopped by {how.name} before the end; the same command goes on from the last round")
    assert [path.name for path in scripts.log.parent.iterdir()] == ["rule.log"]
    assert "Traceback" not in scripts.log.read_text()


REAL = pytest.mark.full("Torch takes a second to import.")


@pytest.mark.parametrize(
    ("before", "inside", "params", "threads", "torch"),
    [
        ("os", "numpy", {"threads": 2}, 2, "fake"),
        ("numpy, torch", "numpy, torch", {}, 1, "fake"),
        pytest.param("numpy, torch", "numpy, torch", {}, 1, "real", marks=REAL),
        pytest.param("os", "torch", {}, 1, "real", marks=REAL),
    ],
)
def test_compute_threads_come_from_the_parameters(scripts, tmp_path, before, inside, params, threads, torch):
    scripts.given["params"] = params
    scripts.environment["OMP_NUM_THREADS"] = str(3 - threads)
    if torch == "fake":
        scripts.environment["PYTHONPATH"] = str(write_fake_torch(tmp_path / "torch"))
    ended = scripts.run(f"""
        import {before}
        with job(snakemake) as running:
            import {inside}
            from threadpoolctl import threadpool_info
            pools = {{pool["num_threads"] for pool in threadpool_info()}}
            pools |= {{torch.get_num_threads()}} if "torch" in sys.modules else set()
            print(running.threads, *pools, os.environ["OPENBLAS_NUM_THREADS"])
    """)
    assert ended.stdout.split() == [str(threads)] * 3


def test_an_installed_copy_in_place_of_the_workflow_s_package_is_refused(scripts, tmp_path):
    (tmp_path / "workflow" / "brainfed").mkdir(parents=True)
    (tmp_path / "workflow" / "brainfed" / "__init__.py").touch()
    scripts.given["scriptdir"] = str(tmp_path / "workflow" / "scripts")
    ended = scripts.run("with job(snakemake): print('ran')")
    assert (ended.code, ended.stdout) == (1, "")
    assert f"this workflow's package is {tmp_path / 'workflow' / 'brainfed'}, Python imported" in ended.stderr
    assert "pip install -e ." in ended.stderr


def test_a_gpu_job_holds_a_device_before_torch_is_imported(scripts, tmp_path):
    scripts.see(FakeDriver(tmp_path, ["GPU-aaaa-1"]), write_fake_torch(tmp_path / "torch", cuda=None))
    ended = scripts.run("with job(snakemake, gpu=True): print('ran')")
    assert ended.log.splitlines()[0].endswith("GPU GPU-aaaa-1, 1 thread(s)")
    assert (ended.code, ended.stdout) == (1, "")
    assert "GPU GPU-aaaa-1: the installed torch" in ended.stderr
    assert ended.stderr.endswith("or run with --resources gpu=0 to use the CPU.\n")


def test_a_job_that_waits_for_a_device_can_be_stopped(scripts, tmp_path):
    scripts.see(FakeDriver(tmp_path, ["GPU-aaaa-1"]))
    holder = scripts.start("""
        from brainfed.runtime.devices import lease
        with lease(1):
            print("held", flush=True)
            sys.stdin.read()
    """)
    assert holder.stdout.readline() == "held\n"
    waiting = scripts.start("with job(snakemake, gpu=True): print('ran')")
    until_true(lambda: scripts.log.exists() and scripts.log.read_text() != "")
    waiting.terminate()
    stdout, stderr = waiting.communicate(timeout=HANGS_AFTER_S)
    holder.kill()
    holder.communicate(timeout=HANGS_AFTER_S)
    assert (waiting.returncode, stdout) == (130, "")
    assert "stopped by SIGTERM before the end" in stderr


@pytest.mark.parametrize(("gpu", "resources"), [("False", {"gpu": 1}), ("True", {"gpu": 0}), ("True", {})])
def test_a_job_without_gpu_asks_no_driver(scripts, gpu, resources):
    del scripts.environment["CUDA_VISIBLE_DEVICES"]
    scripts.environment["BRAINFED_NVIDIA_SMI"] = "/absent/nvidia-smi"
    scripts.given["resources"] = resources
    ended = scripts.run(f"with job(snakemake, gpu={gpu}) as running: print(running.device)")
    assert (ended.code, ended.stdout) == (0, "cpu\n")


def test_timing_measures_seconds_and_memory_and_names_no_host(scripts):
    ended = scripts.run("""
        import time
        with job(snakemake) as running:
            before = running.timing()
            block = bytearray(os.urandom(64 * 1024**2))
            time.sleep(0.05)
            print(json.dumps([before, running.timing()]))
    """)
    before, after = json.loads(ended.stdout)
    assert set(after) == {"seconds", "peak_memory_mb", "device"}
    assert after["device"] == "cpu"
    assert after["seconds"] >= before["seconds"] + 0.05
    assert after["peak_memory_mb"] >= before["peak_memory_mb"] + 60


def test_the_time_of_a_stopped_process_counts_and_the_next_names_its_start(scripts, tmp_path):
    begin = f"""
        import time
        import numpy as np
        snakemake.wildcards = {{"variant": "fedni", "repeat": "0"}}
        with job(snakemake) as running:
            kept = running.checkpoint({str(tmp_path / "out")!r}, "0a")
            last = kept.part("folds-0-1").load()
            running.started -= 100
            kept.part("folds-0-1").save(last[0] + 12 if last else 11, {{"w": np.ones(1)}}, {{}})
            print(running.timing()["seconds"])
        """
    first, second = scripts.run(begin), scripts.run(begin)
    assert 100 <= float(first.stdout) < 200 <= float(second.stdout) < 300
    assert "goes on" not in first.log + first.stderr
    assert second.stderr == "fedni, repeat 0: goes on after round 12, which an earlier run kept\n"
    assert second.stderr.strip() in second.log


def test_progress_and_own_warnings_reach_the_terminal_and_the_rest_the_log(scripts):
    ended = scripts.run("""
        import logging, warnings
        with job(snakemake) as running:
            logging.getLogger("brainfed.cohort").info("120 subjects")
            logging.getLogger("brainfed.cohort").warning("3 subjects dropped")
            warnings.warn("a library's")
            running.progress.every = 0
            running.progress(2, 2, "round")
    """)
    assert ended.stderr == "3 subjects dropped\nround 2 of 2\n"
    for line in ("120 subjects", "3 subjects dropped", "a library's", "round 2 of 2"):
        assert line in ended.log


def test_provenance_names_versions_and_processor_but_no_host(tmp_path):
    import platform

    import numpy

    described = {**versions(), **machine()}
    assert described["numpy"] == numpy.__version__
    assert described["python"] == platform.python_version()
    assert set(machine()) == {"platform", "cpu", "cores"}
    assert described["cpu"]
    assert 1 <= int(described["cores"]) <= (os.cpu_count() or 1)
    assert platform.node() not in " ".join(map(str, described.values())).split()
    (tmp_path / "empty").touch()
    assert file_digest(tmp_path / "empty") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_a_record_names_no_version_of_ours():
    """A new version of brainfed makes no result stale, also not with `library_versions: rerun`: code has digests."""
    assert "brainfed" in versions() and "numpy" in imported_versions()
    assert not {"brainfed", "snakemake"} & imported_versions().keys()


def test_a_damaged_input_ends_a_job_before_it_computes(scripts, tmp_path):
    ended = scripts.run(f"""
        from pathlib import Path
        from brainfed.runtime.records import Making
        read, written = (str(Path({str(tmp_path)!r}, name)) for name in ("features", "scores"))
        making = Making({{}}, (), [read])
        Path(read).write_text("features")
        making.finish({{}})
        with Path(read).open("r+b") as file:
            file.write(b"#")
        snakemake.input, snakemake.output = {{"features": read}}, [written]
        with job(snakemake):
            print("computes")
    """)
    assert (ended.code, ended.stdout) == (1, "")
    assert "features: expected the content that its job wrote, found another" in ended.stderr
