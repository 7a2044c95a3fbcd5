"""`brainfed join` is stopped: Snakemake and its jobs end with it, also those that do not heed an interrupt."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from brainfed.deployment import join
from brainfed.deployment.desk import Desk
from brainfed.federation.apart.exchange import REFUSED
from brainfed.federation.apart.packet import Packet
from brainfed.runtime.errors import UserError

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


def test_a_run_that_fails_because_the_coordinator_refused_the_site_ends_with_its_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(join.sys, "executable", shutil.which("false"))
    desk = Desk(dict, lambda request: None, "secret")
    run = join._Snakemake(tmp_path / "site.yaml", "1", 0, desk)
    with pytest.raises(UserError, match="Snakemake ended with code 1; mend the cause above"):
        run(["file"], {}, lambda: None)
    desk.of_coordinator(Packet(REFUSED, {"sentence": "set both by NTP."}))
    with pytest.raises(UserError, match=r"^set both by NTP\.$"):
        run(["file"], {}, lambda: None)
