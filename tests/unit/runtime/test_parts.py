"""Parts that a killed process left are removed; those of a living one are not."""

import os
import platform
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from brainfed.runtime.artefacts import write_text
from brainfed.runtime.jobs.checkpoints import Checkpoint, checkpoint_path
from brainfed.runtime.parts import DAY, _begun, part_of


@pytest.fixture(autouse=True)
def folders_are_new() -> None:
    _begun.cache_clear()


@pytest.fixture
def gone() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def begin(target: Path, pid: int, host: str = "") -> Path:
    """A part that the process would have left."""
    name = part_of(target).name.split(".")
    name[-3] = str(pid)
    name[-4] = host or name[-4]
    part = target.with_name(".".join(name))
    part.write_text("half")
    return part


def test_a_part_names_its_file_host_and_process(tmp_path: Path) -> None:
    parts = {part_of(tmp_path / "f.tar.gz").name for _ in range(20)}
    assert len(parts) == 20
    host = platform.node().replace(".", "-")
    assert {name.rsplit(".", 2)[0] for name in parts} == {f".f.tar.gz.{host}.{os.getpid()}"}


def test_a_writer_that_began_before_this_process_ends_well(tmp_path: Path) -> None:
    source = textwrap.dedent("""
        from brainfed.runtime.artefacts import atomic
        with atomic("f.txt") as temporary:
            temporary.write_text("first")
            print("begun", flush=True)
            input()
    """)
    first = subprocess.Popen(
        [sys.executable, "-c", source],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert first.stdout is not None
    assert first.stdout.readline() == "begun\n"
    second = "from brainfed.runtime.artefacts import write_text; write_text('f.txt', 'second')"
    subprocess.run([sys.executable, "-c", second], cwd=tmp_path, check=True)
    assert (tmp_path / "f.txt").read_text() == "second"
    _, complaint = first.communicate("\n", timeout=60)
    assert (first.returncode, complaint) == (0, "")
    assert (tmp_path / "f.txt").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["f.txt"]


def test_parts_of_the_same_file_by_ended_processes_are_removed(tmp_path: Path, gone: int) -> None:
    live, other = begin(tmp_path / "f.txt", os.getpid()), begin(tmp_path / "g.txt", gone)
    begin(tmp_path / "f.txt", gone)
    write_text(tmp_path / "f.txt", "whole")
    assert {path.name for path in tmp_path.iterdir()} == {"f.txt", live.name, other.name}


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_zombie_does_not_run(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    begin(tmp_path / "f.txt", process.pid)
    write_text(tmp_path / "f.txt", "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["f.txt"]
    process.wait()


def test_a_part_of_another_host_is_left_over_after_a_day_of_the_file_system(tmp_path: Path, gone: int) -> None:
    young, old = (begin(tmp_path / "f.txt", gone, host) for host in ("node1", "node2"))
    now = old.stat().st_mtime
    os.utime(young, (now, now - 0.9 * DAY))
    os.utime(old, (now, now - 1.1 * DAY))
    write_text(tmp_path / "f.txt", "whole")
    assert {path.name for path in tmp_path.iterdir()} == {"f.txt", young.name}


def test_a_state_that_a_living_process_writes_is_not_forgotten_with_the_others(tmp_path: Path, gone: int) -> None:
    output = tmp_path / "predictions.parquet"
    checkpoint = Checkpoint(checkpoint_path(output, "aaaa"), "aaaa")
    live = begin(checkpoint_path(output, "bbbb"), os.getpid())
    begin(checkpoint_path(output, "aaaa"), gone)
    begin(checkpoint_path(output, "bbbb"), gone)
    checkpoint.remove()
    assert [path.name for path in tmp_path.iterdir()] == [live.name]
