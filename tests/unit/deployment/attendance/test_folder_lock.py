"""A second `brainfed join` in one folder ends with a sentence; a killed one leaves the folder free."""

import os
import signal
import subprocess
import sys

import pytest

from brainfed.deployment.attendance.folder_lock import folder_lock
from brainfed.runtime.errors import UserError

HOLD = """
import sys, time
from pathlib import Path
from brainfed.deployment.attendance.folder_lock import folder_lock
with folder_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_refused_until_the_first_is_killed(tmp_path):
    lock = tmp_path / "join.lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(lock)], stdout=subprocess.PIPE, text=True) as first:
        try:
            assert first.stdout is not None and first.stdout.readline() == "held\n"
            held = rf"found one that runs \(process {first.pid}\); stop it"
            with pytest.raises(UserError, match=held), folder_lock(lock):
                pytest.fail("held by two")
            first.send_signal(signal.SIGKILL)
            first.wait(10)
        finally:
            first.kill()
    with folder_lock(lock):
        assert lock.read_text() == str(os.getpid())


def test_a_lock_is_free_after_its_body(tmp_path):
    held = []
    for number in range(2):
        with folder_lock(tmp_path / "join.lock"):
            held.append(number)
    assert held == [0, 1]
