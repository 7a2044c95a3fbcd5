"""A full disk: one sentence with the file, its size and the remedy, and nothing half-written."""

import errno
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from safetensors import SafetensorError

from brainfed.runtime import (
    FullDiskError,
    atomic,
    full_disk,
    is_full,
    read_arrays,
    write_arrays,
    write_table,
    write_text,
    writing_blocks,
)
from brainfed.runtime.jobs import Checkpoint

LARGE = 10**6


@pytest.fixture
def small(tmp_path):
    """A file system of 256 KiB."""
    if os.geteuid() != 0 or sys.platform != "linux" or shutil.which("mount") is None:
        pytest.skip("only root can mount a small file system, and only here")
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


def write_blocks(path, numbers):
    with writing_blocks(path, {"x": (np.float64, (LARGE,))}, {}) as append:
        for start in range(0, LARGE, 1000):
            append("x", numbers[start : start + 1000])


def test_a_disk_that_holds_no_more_files_is_told_from_one_without_room(tmp_path, monkeypatch):
    found = os.statvfs(tmp_path)
    assert "MiB are free" in str(full_disk(tmp_path / "table.tsv", 10, 0))
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_files=found.f_files or 9, f_favail=0))
    said = str(full_disk(tmp_path / "table.tsv", 10, 0))
    assert "holds as many files as it can" in said
    assert "are free" not in said


def files_in(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), True),
        (SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"), True),
        (OSError(errno.EACCES, "Permission denied"), False),
        (ValueError("28"), False),
    ],
)
def test_a_full_disk_is_recognised(error, full):
    assert is_full(error) == full


@pytest.mark.parametrize("write", ["arrays", "blocks", "table", "text"])
def test_a_file_that_does_not_fit_is_one_sentence_and_leaves_the_old_file(small, write):
    path = small / "out"
    path.write_bytes(b"the one before")
    numbers = np.random.default_rng(0).normal(size=LARGE)
    writers = {
        "arrays": lambda: write_arrays(path, {"x": numbers}, {}),
        "blocks": lambda: write_blocks(path, numbers),
        "table": lambda: write_table(path, pd.DataFrame({"x": numbers})),
        "text": lambda: write_text(path, "x" * LARGE),
    }
    with pytest.raises(FullDiskError) as caught:
        writers[write]()
    needs = {"arrays": "7.6 MiB", "blocks": "7.6 MiB", "table": "more than 0.2 MiB", "text": "1.0 MiB"}[write]
    sentence = str(caught.value)
    assert sentence.startswith(f"{path}: there is no room for this file, it needs {needs}, 0.2 MiB are free in {small}")
    assert "make room" in sentence and "run the same command again" in sentence
    assert path.read_bytes() == b"the one before"
    assert files_in(small) == ["out"]


def test_an_error_of_the_disk_in_the_middle_leaves_nothing(tmp_path):
    needs = r"scores: .* it needs 1\.0 MiB"
    with pytest.raises(FullDiskError, match=needs), atomic(tmp_path / "scores", 2**20) as part:
        part.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert files_in(tmp_path) == []


def test_a_state_that_does_not_fit_keeps_the_one_before_and_the_job_running(small, caplog):
    checkpoint = Checkpoint(small / ".out.d.checkpoint", "d")
    checkpoint.save(3, {"x": np.ones(10)}, {})
    checkpoint.save(4, {"x": np.ones(LARGE)}, {})
    kept = checkpoint.load()
    assert kept is not None and kept[0] == 3
    assert "the state after round 5 is not kept" in caplog.text
    assert files_in(small) == [".out.d.checkpoint"]


JOB = """
import logging
import numpy as np
from brainfed.runtime import write_arrays
with job(snakemake):
    for _ in range(100):
        logging.getLogger("brainfed.cohort").info("words " * 1000)
    write_arrays(given['output'], {"x": np.ones(given['size'])}, {})
"""


OTHERS = pytest.mark.full("One of the four is enough for each change.")


@pytest.mark.parametrize(
    ("room_for_log", "room_for_output"),
    [
        (True, False),
        *(pytest.param(log, out, marks=OTHERS) for log, out in ((False, True), (True, True), (False, False))),
    ],
)
def test_a_job_whose_log_is_full_ends_as_without_it(scripts, small, tmp_path, room_for_log, room_for_output):
    if not room_for_log:
        (small / "filler").write_bytes(b"x" * 2**18)
    output = (tmp_path if room_for_output else small) / "out.safetensors"
    scripts.given |= {"log": [str(small / "rule.log")], "output": str(output), "size": LARGE}
    ended = scripts.run(JOB)
    assert "Traceback" not in ended.stderr and "Logging error" not in ended.stderr
    assert ended.code == (0 if room_for_output else 1)
    if room_for_output:
        assert read_arrays(output).arrays["x"].shape == (LARGE,)
    else:
        assert ended.stderr.splitlines()[-1].startswith(f"{output}: there is no room for this file, it needs 7.6 MiB")
        assert not output.exists()


def test_without_room_for_a_log_a_job_logs_to_stderr(scripts, tmp_path):
    fails = """
import logging
from brainfed.runtime.jobs import _job as module
def configure(path):
    if path is not None:
        raise OSError(28, "No space left on device", path)
    logging.basicConfig(level=logging.INFO, force=True)
module.configure = configure
"""
    scripts.given |= {"log": ["logs/rule.log"], "output": str(tmp_path / "out"), "size": 3}
    ended = scripts.run(fails + JOB)
    assert ended.code == 0
    assert "logs/rule.log: there is no room for this file" in ended.stderr
    assert "words words" in ended.stderr
