"""A stopped job: where it stops, and that it goes on to the same bytes."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from brainfed.federation import Pace
from brainfed.inpainting import FedSageSettings, InpaintingSettings
from brainfed.inpainting.fedni import training as fedni
from brainfed.inpainting.fedsage import training as fedsage
from brainfed.runtime.jobs import Checkpoint, Run, stop_asked, whole
from brainfed.runtime.jobs import _stopping as stopping
from brainfed.runtime.jobs._checkpoints import checkpoint_path
from brainfed.runtime.jobs._stopping import SIGNALS, _runs_snakemake, stoppable, stopped_by
from support.processes.awaited import HANGS_AFTER_S, until_it_sleeps, until_true
from support.samples.inpainting_inputs import inpainting_inputs


def ask():
    os.kill(os.getpid(), signal.SIGTERM)


IGNORED = """
import signal

print(*(number.name for number in signal.Signals if signal.getsignal(number) == signal.SIG_IGN))
"""
HEARS = """
import signal, subprocess, sys
from support.processes.signals import hear_signals

hear_signals()
subprocess.run([sys.executable, "-c", sys.argv[1]])
signal.raise_signal(signal.SIGHUP)
signal.raise_signal(signal.SIGINT)
"""


def test_a_test_run_hears_the_signals_that_it_was_started_without():
    ignoring = ["sh", "-c", 'trap "" INT TERM HUP; exec "$0" -c "$1" "$2"', sys.executable, HEARS, IGNORED]
    done = subprocess.run(ignoring, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGINT, "SIGPIPE SIGXFSZ\n")


def test_outside_of_a_round_a_job_stops_at_once():
    reached = []
    with pytest.raises(KeyboardInterrupt), stoppable():
        ask()
        time.sleep(5)
        reached.append("the end")
    assert (reached, stopped_by()) == ([], "SIGTERM")


def test_a_round_ends_and_no_other_begins(capfd):
    begun, ended = [], []
    with pytest.raises(KeyboardInterrupt), stoppable():
        for number in whole(range(5)):
            begun.append(number)
            if number == 2:
                ask()
            assert stop_asked() == (number == 2)
            ended.append(number)
    assert begun == ended == [0, 1, 2]
    assert capfd.readouterr().err == "SIGTERM: stopping after this round; once more stops at once\n"


@pytest.mark.parametrize(("echo", "second", "rounds"), [(1e6, signal.SIGTERM, [0]), (0.0, signal.SIGHUP, [])])
def test_two_signals_at_once_are_one_and_a_later_one_does_not_wait_for_the_round(monkeypatch, echo, second, rounds):
    monkeypatch.setattr(stopping, "ECHO", echo)
    ended = []
    with pytest.raises(KeyboardInterrupt), stoppable():
        for number in whole(range(5)):
            ask()
            os.kill(os.getpid(), second)
            ended.append(number)
    assert (ended, stopped_by()) == (rounds, second.name)


@pytest.mark.parametrize("error", [ImportError, None])
def test_an_interrupt_that_a_library_keeps_for_itself_is_raised_at_the_end(error):
    with pytest.raises(KeyboardInterrupt), stoppable():
        try:
            ask()
            time.sleep(5)
        except KeyboardInterrupt:
            if error:
                raise error("cannot be imported") from None


def test_an_error_without_a_signal_stays_what_it_is():
    with pytest.raises(ValueError, match="ours"), stoppable():
        raise ValueError("ours")


KEPT = """
import ctypes
import time
from brainfed.runtime.jobs import _stopping as stopping
from brainfed.runtime.jobs._job import _end_at_once

stopping.PATIENCE = 0.3
with stopping.stoppable(_end_at_once):
    print("running", flush=True)
    {body}
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks at a process in /proc")
@pytest.mark.parametrize(
    "body",
    [
        "mutex = ctypes.create_string_buffer(64)\n    for _ in range(2): ctypes.CDLL(None).pthread_mutex_lock(mutex)",
        "exec('try: time.sleep(3600)\\nexcept BaseException: time.sleep(3600)')",
        "type('Kept', (), {'__del__': lambda _: time.sleep(3600)})()\n    time.sleep(3600)",
    ],
    ids=["compiled code", "an except clause", "a destructor"],
)
def test_a_job_that_is_kept_from_stopping_is_ended(body):
    job = subprocess.Popen(
        [sys.executable, "-c", KEPT.replace("{body}", body)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert job.stdout.readline() == "running\n"
    until_it_sleeps(job.pid)
    job.send_signal(signal.SIGTERM)
    _, errors = job.communicate(timeout=HANGS_AFTER_S)
    assert job.returncode == 130 and "stopped by SIGTERM before the end" in errors


def test_a_signal_to_a_process_that_a_job_has_forked_is_not_the_jobs(monkeypatch):
    monkeypatch.setattr(stopping, "LOOK_EVERY", 0.05)
    monkeypatch.setattr(stopping, "PATIENCE", 0.1)
    ended: list[str] = []
    with stoppable(ended.append):
        child = os.fork()
        if not child:
            signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
            ask()
            time.sleep(3600)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        time.sleep(0.5)
    assert ended == []


def test_after_a_round_that_failed_a_job_stops_at_once():
    with pytest.raises(KeyboardInterrupt), stoppable():
        try:
            for _ in whole(range(5)):
                raise ValueError
        except ValueError:
            ask()
            time.sleep(5)
        pytest.fail("it went on")


def test_the_former_handlers_come_back_and_ignored_signals_stay_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    former = [signal.getsignal(number) for number in SIGNALS]
    with stoppable():
        assert signal.getsignal(signal.SIGTERM) != former[0]
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    assert [signal.getsignal(number) for number in SIGNALS] == former
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(("echo", "heard"), [(1e6, []), (0.0, [signal.SIGTERM])])
def test_an_echo_that_comes_while_a_stopped_job_ends_is_not_heard(monkeypatch, echo, heard):
    monkeypatch.setattr(stopping, "ECHO", echo)
    found: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: found.append(number))
    with pytest.raises(KeyboardInterrupt), stoppable():
        ask()
        time.sleep(5)
    ask()
    assert found == heard


def test_a_state_is_due_after_a_stop_request_however_recent_the_last():
    pace = Pace(minimum_seconds=1e6)
    with pytest.raises(KeyboardInterrupt), stoppable():
        for _ in whole([1]):
            assert not pace.due()
            ask()
            assert pace.due()


@pytest.mark.parametrize(
    ("train", "settings", "stopped_in"),
    [
        (fedni.train, InpaintingSettings(rounds=3, local_epochs=1), 1),
        (fedni.train, InpaintingSettings(rounds=3, local_epochs=1), 3),
        # Three owners take a step alone each, then one in the federation each.
        (fedsage.train, FedSageSettings(rounds=1, local_epochs=1), 2),
        (fedsage.train, FedSageSettings(rounds=1, local_epochs=1), 4),
        (fedsage.train, FedSageSettings(rounds=1, local_epochs=1), 6),
    ],
)
def test_a_generator_stopped_in_any_round_keeps_it_and_goes_on_to_the_same_bytes(
    train, settings, stopped_in, tmp_path, monkeypatch
):
    inputs = inpainting_inputs()
    expected = train(inputs, settings, Run())
    monkeypatch.setattr(Pace, "due", lambda _: stop_asked())
    checkpoint = Checkpoint(checkpoint_path(tmp_path / "generator", "d"), "d")
    done = []

    def stop(number, _total, _what):
        done.append(number)
        if number == stopped_in:
            ask()

    with pytest.raises(KeyboardInterrupt), stoppable():
        train(inputs, settings, Run(checkpoint=checkpoint, progress=stop))
    assert done[-1] == stopped_in
    with stoppable():
        found = train(
            inputs, settings, Run(checkpoint=checkpoint, progress=lambda number, *_, **__: done.append(number))
        )
    assert done == sorted(set(done)), "a round was trained twice"
    for name, array in expected.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
    assert found.history.equals(expected.history)
    assert found.crossings == expected.crossings


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_job_whose_workflow_was_killed_stops(tmp_path):
    job = textwrap.dedent("""
        import sys, time
        from pathlib import Path
        from brainfed.runtime.jobs._stopping import stoppable
        try:
            with stoppable():
                Path("running").touch()
                time.sleep(3600)
        except KeyboardInterrupt:
            Path("stopped").touch()
    """)
    script = tmp_path / ".snakemake" / "scripts" / "job.py"
    script.parent.mkdir(parents=True)
    script.write_text(job)
    # Snakemake as a job sees it: a process of that name that waits for a shell that waits for the job.
    (tmp_path / "snakemake").write_text(
        f"import subprocess; subprocess.run(['bash', '-c', 'set -euo pipefail; {sys.executable} {script}; true'])"
    )
    workflow = subprocess.Popen([sys.executable, "snakemake"], cwd=tmp_path)
    until_true((tmp_path / "running").exists)
    assert not (tmp_path / "stopped").exists()
    workflow.kill()
    workflow.wait()
    until_true((tmp_path / "stopped").exists)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("python /env/bin/snakemake --cores 2", True),
        ("/usr/bin/python3 -sP /usr/bin/snakemake", True),
        ("snakemake --cores 2", True),
        ("python -m snakemake --mode remote --target-jobs train_method:", True),
        ("python -u -m snakemake.cli", True),
        ("python -m pytest tests/workflow/snakemake", False),
        ("python study.py --directory /home/me/snakemake", False),
        ("apptainer exec --bind /env/lib/snakemake:/mnt/snakemake image.sif bash -c job", False),
        ("bash /project/.snakemake/shell_tmp.1/script.sh", False),
        ("python /project/.snakemake/scripts/tmp1.train_method.py", False),
        ("python /home/me/snakemake-8/run.py", False),
        ("", False),
    ],
)
def test_snakemake_is_recognised_by_its_program_not_by_a_path_that_names_it(words, expected):
    assert _runs_snakemake(b"\0".join(word.encode() for word in words.split())) == expected


def test_the_shell_between_is_not_snakemake():
    text = "set -euo pipefail; /env/bin/python /home/snakemake/.snakemake/scripts/tmp1.train_method.py"
    assert not _runs_snakemake(b"\0".join([b"/bin/bash", b"-c", text.encode()]))


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_line_that_cannot_be_read_is_none(monkeypatch):
    monkeypatch.setattr(stopping, "_ancestors", lambda: iter([os.getppid(), 2**22 + 1]))
    assert stopping._line_to_workflow() == ()
