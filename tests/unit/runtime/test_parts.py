"""What is half-written: parts that a killed process left, and the lock of a folder."""

import errno
import fcntl
import os
import platform
import signal
import subprocess
import sys

import pytest

from brainfed.runtime import UserError, folder_lock, part_of, write_text
from brainfed.runtime._disk import DAY, _begun
from brainfed.runtime.jobs import Checkpoint
from brainfed.runtime.jobs._checkpoints import checkpoint_path
from brainfed.sites.flower import write_private
from support.processes.awaited import HANGS_AFTER_S


@pytest.fixture(autouse=True)
def folders_are_new():
    _begun.cache_clear()


@pytest.fixture
def gone():
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def begin(target, pid, host=""):
    """A part that the process would have left."""
    name = part_of(target).name.split(".")
    name[-3] = str(pid)
    name[-4] = host or name[-4]
    part = target.with_name(".".join(name))
    part.write_text("half")
    return part


def test_a_part_names_its_file_host_and_process(tmp_path):
    parts = {part_of(tmp_path / "f.tar.gz").name for _ in range(20)}
    assert len(parts) == 20
    host = platform.node().replace(".", "-")
    assert {name.rsplit(".", 2)[0] for name in parts} == {f".f.tar.gz.{host}.{os.getpid()}"}


BEGINS = """
from brainfed.runtime import atomic
with atomic("f.txt") as temporary:
    temporary.write_text("first")
    print("begun", flush=True)
    input()
"""


def test_a_writer_that_began_before_this_process_ends_well(tmp_path):
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    first = subprocess.Popen([sys.executable, "-c", BEGINS], cwd=tmp_path, text=True, **pipes)
    assert first.stdout.readline() == "begun\n"
    write_text(tmp_path / "f.txt", "second")
    assert (tmp_path / "f.txt").read_text() == "second"
    _, complaint = first.communicate("\n", timeout=HANGS_AFTER_S)
    assert (first.returncode, complaint) == (0, "")
    assert (tmp_path / "f.txt").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["f.txt"]


@pytest.mark.parametrize("write", [write_text, lambda path, text: write_private(path, text.encode())])
def test_parts_of_the_same_file_by_ended_processes_are_removed(tmp_path, gone, write):
    live, other = begin(tmp_path / "f.txt", os.getpid()), begin(tmp_path / "g.txt", gone)
    begin(tmp_path / "f.txt", gone)
    write(tmp_path / "f.txt", "whole")
    assert {path.name for path in tmp_path.iterdir()} == {"f.txt", live.name, other.name}


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_zombie_does_not_run(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    process.stdout.read()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    begin(tmp_path / "f.txt", process.pid)
    write_text(tmp_path / "f.txt", "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["f.txt"]
    process.wait()


def test_a_part_of_another_host_is_left_over_after_a_day_of_the_file_system(tmp_path, gone):
    young, old = (begin(tmp_path / "f.txt", gone, host) for host in ("node1", "node2"))
    now = old.stat().st_mtime
    os.utime(young, (now, now - 0.9 * DAY))
    os.utime(old, (now, now - 1.1 * DAY))
    write_text(tmp_path / "f.txt", "whole")
    assert {path.name for path in tmp_path.iterdir()} == {"f.txt", young.name}


def test_a_state_that_a_living_process_writes_is_not_forgotten_with_the_others(tmp_path, gone):
    output = tmp_path / "predictions.parquet"
    checkpoint = Checkpoint(checkpoint_path(output, "aaaa"), "aaaa")
    live = begin(checkpoint_path(output, "bbbb"), os.getpid())
    begin(checkpoint_path(output, "aaaa"), gone)
    begin(checkpoint_path(output, "bbbb"), gone)
    checkpoint.remove()
    assert [path.name for path in tmp_path.iterdir()] == [live.name]


HOLD = """
import sys, time
from pathlib import Path
from brainfed.runtime import folder_lock
with folder_lock(Path(sys.argv[1]), "run", "stop it"):
    print("held", flush=True)
    time.sleep(3600)
"""


def test_a_second_process_is_refused_until_the_first_is_killed(tmp_path, capsys):
    lock = tmp_path / "join.lock"
    command = [sys.executable, "-c", HOLD, str(lock)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as first:
        try:
            assert first.stdout.readline() == "held\n"
            held = rf"expected no other run, found one that runs \(on .*: process {first.pid} in {tmp_path}\); stop it"
            with pytest.raises(UserError, match=held), folder_lock(lock, "run", "stop it"):
                pytest.fail("held by two")
            first.send_signal(signal.SIGKILL)
            first.wait(10)
        finally:
            first.kill()
    with folder_lock(lock, "run", "stop it"):
        assert f"process {os.getpid()} in " in lock.read_text()
    assert lock.read_text() == ""
    assert capsys.readouterr().err == ""


def test_a_lock_is_free_after_its_body(tmp_path):
    held = []
    for number in range(2):
        with folder_lock(tmp_path / "join.lock", "run", "stop it"):
            held.append(number)
    assert held == [0, 1]


def test_a_lock_that_a_run_on_another_machine_did_not_give_back_is_told(tmp_path, capsys):
    lock = tmp_path / ".lock"
    lock.write_text("on node7: process 12 in /shared/clone")
    with folder_lock(lock, "run", "stop it"):
        said = capsys.readouterr().err
    assert "a run on node7: process 12 in /shared/clone did not give the lock back" in said
    with folder_lock(lock, "run", "stop it"):
        assert capsys.readouterr().err == ""


def test_a_disk_without_locks_is_told_and_holds_nobody_up(tmp_path, capsys, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with folder_lock(tmp_path / ".lock", "run that writes these results", "wait"):
        said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "this disk keeps no locks (No locks available); make sure that no other run that writes these" in said


def test_a_folder_in_which_nothing_can_be_written_holds_nobody_up(tmp_path, capsys, monkeypatch):
    with folder_lock(tmp_path / "none" / ".lock", "run", "stop it"):
        assert capsys.readouterr().err == ""
    # The lock of another user, who let others read it.
    lock = tmp_path / ".lock"
    lock.touch()
    opened = type(lock).open
    monkeypatch.setattr(
        type(lock),
        "open",
        lambda path, mode, **more: opened(path, mode, **more) if mode == "r" else opened(path.parent, mode),
    )
    with folder_lock(lock, "run", "stop it"), pytest.raises(UserError), folder_lock(lock, "run", "stop it"):
        pytest.fail("held by two")
