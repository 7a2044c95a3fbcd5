"""A second process in one folder ends with a sentence; a killed one leaves the folder free."""

import errno
import fcntl
import os
import signal
import subprocess
import sys

import pytest

from brainfed.runtime.errors import UserError
from brainfed.runtime.folder_lock import folder_lock

HOLD = """
import sys, time
from pathlib import Path
from brainfed.runtime.folder_lock import folder_lock
with folder_lock(Path(sys.argv[1]), "run", "stop it"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_refused_until_the_first_is_killed(tmp_path, capsys):
    lock = tmp_path / "join.lock"
    command = [sys.executable, "-c", HOLD, str(lock)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as first:
        try:
            assert first.stdout is not None and first.stdout.readline() == "held\n"
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
