"""`brainfed join` is stopped: Snakemake and its jobs end with it, also those that do not heed an interrupt."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from brainfed.deployment import join

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
)


@pytest.fixture
def stubborn():
    process = subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, process_group=0)
    process.stdout.readline()
    yield process
    if process.poll() is None:
        process.kill()
    process.wait()
    process.stdout.close()


def test_what_does_not_heed_an_interrupt_is_killed_in_the_end(stubborn, monkeypatch):
    monkeypatch.setattr(join, "ENDING_S", 0.2)
    join._Snakemake._end(stubborn)
    assert stubborn.returncode == -signal.SIGKILL


def test_a_second_interrupt_kills_at_once(stubborn):
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        join._Snakemake._end(stubborn)
    assert stubborn.returncode == -signal.SIGKILL
    assert time.monotonic() - begin < 10
