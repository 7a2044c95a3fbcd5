"""The shell that jobs start in."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from brainfed.forking import client, job_shell
from brainfed.forking.client import split_command
from brainfed.runtime import UserError


@pytest.fixture(autouse=True)
def no_forking_process(monkeypatch):
    for name in (client.VARIABLE, "BRAINFED_PYTHON", "BRAINFED_BLOCKED"):
        monkeypatch.setenv(name, "")


def test_a_run_has_a_forking_process_of_its_own():
    assert job_shell().endswith("/job-shell")
    assert client.owner_of(os.environ[client.VARIABLE]) == str(os.getpid())


def test_an_outer_run_may_share_its_own_while_it_lives(monkeypatch):
    for name, kept in ((f"{os.getppid()}-outer", True), ("999999999-gone", False)):
        monkeypatch.setenv(client.VARIABLE, name)
        job_shell()
        assert (os.environ[client.VARIABLE] == name) == kept


def test_it_forks_nothing_where_it_is_switched_off_or_on_a_cluster(monkeypatch):
    for name, forks in (("off", True), ("", False), (f"{os.getppid()}-outer", False)):
        monkeypatch.setenv(client.VARIABLE, name)
        job_shell(forks)
        assert os.environ[client.VARIABLE] == "off"


@pytest.mark.parametrize("value", ["0", "no", "OFF", "1", "self"])
def test_another_value_is_refused(monkeypatch, value):
    monkeypatch.setenv(client.VARIABLE, value)
    with pytest.raises(UserError, match="BRAINFED_FORKS: expected `off`, or no value, found"):
        job_shell()


def test_jobs_start_by_themselves_where_python_has_no_descriptors_of_processes(monkeypatch):
    monkeypatch.delattr(os, "pidfd_open")
    job_shell()
    assert os.environ[client.VARIABLE] == "off"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("/env/python /run/tmp.job.py", ("", "/run/tmp.job.py")),
        ("/env/python '/my runs (2)/tmp.job.py'", ("", "/my runs (2)/tmp.job.py")),
        (
            "source /conda/activate '/e'; /env/python /run/tmp.job.py",
            ("source /conda/activate '/e'; ", "/run/tmp.job.py"),
        ),
        ("source /conda/activate '/e'; python /run/tmp.job.py", ("", "")),
        ("/env/python /run/tmp.job.py; echo done", ("", "")),
        ("/env/python /run/tmp.job.py > log", ("", "")),
        ("/env/python '/a' '/b'", ("", "")),
        ("echo /env/python /run/tmp.job.py", ("", "")),
        ("if true; then /env/python x.py", ("", "")),
        ("echo one > f; echo two >> f", ("", "")),
    ],
)
def test_a_script_is_told_from_other_commands(command, expected):
    assert split_command(command, "/env/python") == expected


@pytest.mark.parametrize("blocked", [True, False])
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo one > f; echo two >> f; cat f", "one\ntwo\n"),
        ("cd sub && pwd -P | sed s,.*/,,", "sub\n"),
        ("cat <<END\nit's $((1 + 1))\nEND", "it's 2\n"),
        ("grep SigIgn /proc/self/status", None),  # What this process ignores, as in bash.
        ("greeting='good day'; {python} 'a script.py'", "good day None\n"),
        ("export greeting='good day'; {python} 'a script.py'", "good day good day\n"),
    ],
)
def test_other_commands_run_in_bash_as_they_are(tmp_path, command, expected, blocked):
    shell = job_shell()
    (tmp_path / "sub").mkdir()
    (tmp_path / "a script.py").write_text("import os\nprint('good day', os.environ.get('greeting'))\n")
    environment = dict(os.environ) | ({} if blocked else {"BRAINFED_BLOCKED": ""})
    done = subprocess.run(
        command.replace("{python}", sys.executable), shell=True, executable=shell, cwd=tmp_path, env=environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if expected is None:
        expected = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout
    assert (done.returncode, done.stdout) == (0, expected), done.stderr


@pytest.mark.parametrize("command", ["false; echo on", "false | cat", "echo $undefined; true"])
def test_a_command_that_fails_in_the_middle_fails_the_job(command):
    done = subprocess.run(command, shell=True, executable=job_shell(), capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "on" not in done.stdout.split()


def test_a_signal_ends_the_wait_for_a_server_that_does_not_answer(tmp_path):
    """The script, which hears the signal, takes the place of the client."""
    shell = job_shell()
    name = f"{os.getpid()}-silent{os.urandom(4).hex()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(client.address(name))
        listener.listen()
        script = tmp_path / "script.py"
        script.write_text("import time\ntime.sleep(3600)\n")
        command = [str(shell), "-c", f"{sys.executable} {script}"]
        with subprocess.Popen(command, env=os.environ | {client.VARIABLE: name}) as waiting:
            connection, _ = listener.accept()
            with connection:
                assert connection.recv(client.LONGEST)
                waiting.terminate()
                assert waiting.wait(600) == -signal.SIGTERM
