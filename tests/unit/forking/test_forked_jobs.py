"""A job that is forked is, for its script and for Snakemake, the job that would have started by itself."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from brainfed.forking import client
from brainfed.forking._shell import BLOCKING, SHELL
from brainfed.forking.server import most_nodes
from brainfed.runtime.jobs import _stopping
from support.processes.awaited import HANGS_AFTER_S, until_true

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="jobs are forked on Linux alone")


def test_the_shell_the_client_and_the_jobs_name_the_same_signals():
    assert (client.PASSED_ON, client.STARTED_BY) == (_stopping.PASSED_ON, _stopping.STARTED_BY)
    names = [number.name for number in client.PASSED_ON]
    assert BLOCKING.partition("=")[2] == ",".join(name.removeprefix("SIG") for name in names)


def owning():
    """The process of a run; a test that names `owner` has a run of its own."""
    process = subprocess.Popen(["sleep", "3600"])
    yield process
    process.kill()
    process.wait()


run, owner = pytest.fixture(owning, scope="module", name="run"), pytest.fixture(owning, name="owner")
OF_THE_SHELL = {"BRAINFED_PYTHON": sys.executable, "BRAINFED_BLOCKED": BLOCKING}


@pytest.fixture
def start(request, tmp_path):
    named = "owner" if "owner" in request.fixturenames else "run"
    return partial(started, tmp_path, request.getfixturevalue(named))


def started(folder, owner, text, forks="", before="", environment=None, **options):
    """Start a script as Snakemake would: with the forking process of a run, or by itself where `forks` is `off`."""
    script = folder / "tmp.job.py"
    script.write_text(text)
    own = {"BRAINFED_FORKS": forks or name_of(owner), "OMP_NUM_THREADS": "3", "GREETING": "good day"}
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [SHELL, "-c", f"{before}{sys.executable} {script}"]
    variables = os.environ | OF_THE_SHELL | own | (environment or {})
    return subprocess.Popen(command, env=variables, cwd=folder, text=True, **(streams | options))


def name_of(owner):
    return f"{owner.pid}-test"


def printed(job):
    """What a job that succeeds writes to its output."""
    output, errors = job.communicate(timeout=HANGS_AFTER_S)
    assert job.returncode == 0, errors
    return output


def listens(name):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as trial:
        return trial.connect_ex(client.address(name)) == 0


def processes_of(owner):
    """The forking process of a run, its nodes and jobs."""
    found = subprocess.run(["pgrep", "-f", f"forking.server {name_of(owner)}"], capture_output=True, check=False)
    return [int(word) for word in found.stdout.split()]


def state(process):
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


def parent(process):
    return Path(f"/proc/{int(process)}/stat").read_text().rpartition(")")[2].split()[1]


def is_running(process):
    try:
        return state(process) != "Z"
    except OSError:
        return False


LOADED = "import sys\nfound = 'numpy' in sys.modules\nimport numpy\nprint(found, 'pandas' in sys.modules)\n"


def test_a_job_has_what_it_imports_at_its_start_and_nothing_of_others(start):
    assert printed(start("import pandas\nprint(pandas.__name__)\n")) == "pandas\n"
    assert printed(start(LOADED)) == "True False\n"
    assert printed(start(LOADED, forks="off")) == "False False\n"


SURROUNDINGS = """
import json
import os
import signal
import sys

import numpy
import sklearn
import snakemake.logging

mask = os.umask(0)
others = ("BRAINFED_FORKS", "BRAINFED_STARTED_BY")
print(json.dumps({
    "words": [sys.argv, __name__, __file__, os.getcwd(), sys.stdin.read()],
    "path": sys.path,
    "mask": mask,
    "variables": {name: value for name, value in os.environ.items() if name not in others},
    "signals": [str(signal.getsignal(number)) for number in (1, 2, 3, 10, 12, 15)],
}))
print("to errors", file=sys.stderr)
"""


def test_a_job_has_the_streams_folder_variables_signals_and_path_of_its_own(start, tmp_path):
    def nohup():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.umask(0o027)

    found = []
    for forks in ("", "off"):
        job = start(SURROUNDINGS, forks, preexec_fn=nohup, environment={"PYTHONPATH": "further"})
        output, errors = job.communicate(timeout=HANGS_AFTER_S)
        assert (job.returncode, errors) == (0, "to errors\n")
        found.append(json.loads(output))
    forked, by_itself = found
    assert forked == by_itself
    assert forked["mask"] == 0o027 and forked["variables"]["GREETING"] == "good day"
    assert str(tmp_path / "further") in forked["path"] and forked["signals"][0] == "1"


THREADS = """
import numpy
import scipy.linalg
import sklearn.svm
import torch
from threadpoolctl import threadpool_info
from brainfed.runtime.jobs._job import _limit_threads

_limit_threads(3)
print(torch.get_num_threads(), sorted((each["internal_api"], each["num_threads"]) for each in threadpool_info()))
"""


@pytest.mark.full("It starts Python with all libraries four times.")
def test_a_job_limits_its_threads(start):
    forked, by_itself = (printed(start(THREADS, forks)) for forks in ("", "off"))
    assert forked == by_itself
    assert forked.startswith("3 [") and ", 3)" in forked


def test_a_fork_draws_other_numbers_than_the_next(start):
    text = (
        "import random\nimport numpy\nimport torch\n"
        "print(random.random(), numpy.random.random(), torch.rand(1).item(), torch.initial_seed())\n"
    )
    first, second = printed(start(text)).split(), printed(start(text)).split()
    assert [one for one, other in zip(first, second, strict=True) if one == other] == []


@pytest.mark.parametrize("forks", ["", "off"])
@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("raise SystemExit(130)", 130, ""),
        ("raise ValueError('no such thing')", 1, "ValueError: no such thing"),
        ("import os\nos.kill(os.getpid(), 9)", -signal.SIGKILL, ""),
        ("import os\nos.abort()", -signal.SIGABRT, ""),
        ("import atexit\nimport os\natexit.register(lambda: os.write(2, b'the end'))", 0, "the end"),
    ],
)
def test_a_job_ends_as_its_script(start, text, code, said, forks):
    job = start(text, forks)
    _, errors = job.communicate(timeout=HANGS_AFTER_S)
    assert (job.returncode, said in errors) == (code, True), errors


WAITING = """
import os
import signal
import sys
import time

def stop(number, frame):
    print("stopped by", number, flush=True)
    sys.exit(7)

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, stop)
print(os.getpid(), flush=True)
time.sleep(3600)
"""
CHILD = "import subprocess\nprint(subprocess.Popen(['sleep', '3600']).pid, os.getpid()"
WITH_CHILD = WAITING.replace("print(os.getpid()", CHILD)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_to_the_client_reaches_the_job(start, number):
    job = start(WAITING)
    assert int(job.stdout.readline()) != job.pid
    job.send_signal(number)
    output, _ = job.communicate(timeout=HANGS_AFTER_S)
    assert (job.returncode, output) == (7, f"stopped by {number.value}\n")


OF_OURS = """
import time
from brainfed.scripting import job
from types import SimpleNamespace

class Given(list):
    get = dict().get
    items = dict().items

parts = {name: Given() for name in ("log", "input", "output", "params", "resources")}
with job(SimpleNamespace(**parts, scriptdir=".")) as running:
    import numpy
    time.sleep(3600)
"""
STARTS = int(os.environ.get("BRAINFED_CASES", "9"))


@pytest.mark.parametrize(
    ("text", "forks", "span", "before"),
    [
        (OF_OURS, "", 0.25, ""),
        *(
            pytest.param(OF_OURS, *case, marks=pytest.mark.full("Nine starts take eight seconds."))
            for case in (("off", 1.0, ""), ("", 0.5, "sleep 0.3; true; "), ("off", 0.9, "sleep 0.3; true; "))
        ),
        ("import time\ntime.sleep(3600)\n", "", 0.25, ""),
    ],
    ids=["forked", "by itself", "forked after commands", "by itself after commands", "any script"],
)
@pytest.mark.usefixtures("owner")
def test_no_interrupt_is_lost_while_a_job_starts(start, text, forks, span, before):
    """Whenever it comes: before the process that runs the script is known, while it imports, and while it works."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for case in range(STARTS):
        job, number = start(text, forks, before=before), numbers[case % 3]
        time.sleep(span * case / STARTS)
        job.send_signal(number)
        _, errors = job.communicate(timeout=HANGS_AFTER_S)
        if text == OF_OURS:
            assert job.returncode == -number or (job.returncode == 130 and f"stopped by {number.name} before" in errors)
        assert job.returncode != 0, errors


def test_a_job_is_paused_with_its_client(start):
    job = start(WITH_CHILD)
    child, process = map(int, job.stdout.readline().split())

    job.send_signal(signal.SIGTSTP)
    until_true(lambda: state(process) == state(child) == state(job.pid) == "T")
    job.send_signal(signal.SIGCONT)
    until_true(lambda: state(process) == state(child) == "S")
    os.kill(child, signal.SIGKILL)
    job.send_signal(signal.SIGTERM)
    job.communicate(timeout=HANGS_AFTER_S)
    assert job.returncode == 7


PAUSED_AT_ONCE = """
import os, signal
from brainfed.forking import client

def begun(*_):
    os.kill(os.getpid(), signal.SIGTSTP)
    return True

client._begun, client._answer = begun, lambda _: 0
client._pass_on = lambda _, number: print("paused" if number == signal.SIGTSTP else number, flush=True)
client._follow(None, "job.py")
"""


def test_a_pause_waits_until_the_client_can_pass_it_on():
    """In a session without a terminal the system drops it where no handler stands yet."""
    command = [sys.executable, "-c", PAUSED_AT_ONCE]
    ended = subprocess.run(command, capture_output=True, text=True, start_new_session=True, timeout=HANGS_AFTER_S)
    assert (ended.stdout, ended.returncode) == ("paused\n", 0), ended.stderr


def test_a_signal_to_all_processes_leaves_the_jobs_to_their_clients(start, owner):
    text = "import os\nimport sys\nprint(os.getpid(), flush=True)\nsys.stdin.read()\nprint('ended')\n"
    job = start(text, stdin=subprocess.PIPE)
    own = int(job.stdout.readline())
    helpers = [process for process in processes_of(owner) if process != own]
    assert len(helpers) >= 2
    for process in helpers:
        os.kill(process, signal.SIGTERM)
    assert printed(job) == "ended\n"
    assert listens(name_of(owner))


@pytest.mark.usefixtures("owner")
def test_a_signal_that_comes_late_is_not_taken_for_the_end_of_a_job_or_another(start):
    text = "import os\nimport sys\nprint(os.getpid(), os.getppid(), flush=True)\nsys.stdin.read()\nprint('ended')\n"
    short, long = (start(text, stdin=subprocess.PIPE) for _ in range(2))
    process, keeper = map(int, short.stdout.readline().split())
    assert int(long.stdout.readline().split()[1]) != keeper
    os.kill(keeper, signal.SIGSTOP)
    short.stdin.close()
    until_true(lambda: not is_running(process))
    short.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    os.kill(keeper, signal.SIGCONT)
    short.stdin = None
    assert printed(short) == printed(long) == "ended\n"


@pytest.mark.parametrize("stream", [">&-", "2>&-", "<&-"])
def test_a_job_without_a_stream_starts_by_itself(tmp_path, stream):
    (tmp_path / "job.py").write_text("from pathlib import Path\nPath('done').touch()\n")
    command = f"exec {SHELL} -c '{sys.executable} job.py' {stream}"
    subprocess.run(["bash", "-c", command], cwd=tmp_path, env=os.environ | OF_THE_SHELL, check=True)
    assert (tmp_path / "done").exists()


def test_a_client_that_is_killed_takes_its_job_along(start):
    job = start(WITH_CHILD)
    processes = [int(word) for word in job.stdout.readline().split()]
    job.kill()
    until_true(lambda: not any(map(is_running, processes)))


def test_the_forking_process_ends_with_its_owner_and_lets_a_job_end(start, owner):
    text = "import sys\nprint('begun', flush=True)\nsys.stdin.read()\nprint('ended')\n"
    job = start(text, stdin=subprocess.PIPE)
    assert job.stdout.readline() == "begun\n"
    assert listens(name_of(owner))
    owner.kill()
    owner.wait()
    until_true(lambda: not listens(name_of(owner)))
    assert printed(job) == "ended\n"
    assert printed(start("print('by itself')\n")) == "by itself\n"


@pytest.mark.usefixtures("owner")
def test_a_job_whose_node_is_killed_goes_on_and_the_next_is_forked_anew(start):
    text = "import os\nimport sys\nimport numpy\nprint(os.getppid(), flush=True)\nsys.stdin.read()\nprint('ended')\n"
    job = start(text, stdin=subprocess.PIPE)
    node = int(parent(job.stdout.readline()))
    os.kill(node, signal.SIGKILL)
    until_true(lambda: not is_running(node))
    assert printed(start(LOADED)) == "True False\n"
    assert printed(job) == "ended\n"


@pytest.mark.usefixtures("owner")
def test_a_job_whose_keeper_is_killed_fails_with_a_sentence_and_goes_with_it(start):
    job = start("import os\nimport time\nprint(os.getpid(), os.getppid(), flush=True)\ntime.sleep(3600)\n")
    process, keeper = map(int, job.stdout.readline().split())
    os.kill(keeper, signal.SIGKILL)
    _, errors = job.communicate(timeout=HANGS_AFTER_S)
    assert job.returncode == 1
    assert "a helper process of this run was killed, perhaps because memory ran out; start the same command" in errors
    until_true(lambda: not is_running(process))
    assert printed(start("print('forked anew')\n")) == "forked anew\n"


def test_jobs_beside_each_other_each_have_their_own_end(start):
    jobs = []
    for code in range(6):
        text = f"import sys\nprint({code}, flush=True)\nsys.stdin.read()\nraise SystemExit({code})\n"
        jobs.append(start(text, stdin=subprocess.PIPE))
        assert jobs[-1].stdout.readline() == f"{code}\n"
    for job in jobs:
        job.stdin.close()
    assert [job.wait(timeout=HANGS_AFTER_S) for job in jobs] == list(range(6))


@pytest.mark.usefixtures("owner")
def test_a_process_with_a_second_thread_forks_no_job(start, tmp_path):
    folder = tmp_path / "libraries"
    folder.mkdir()
    (folder / "threaded.py").write_text(
        "import threading\nimport time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    )
    further = {"PYTHONPATH": str(folder)}
    text = "import sys\nprint('threaded' in sys.modules, 'numpy' in sys.modules)\nimport numpy\n"
    assert printed(start(text, environment=further)) == "False True\n"
    assert printed(start(text + "import threaded\n", environment=further)) == "False False\n"


def test_a_package_of_the_jobs_own_path_is_its_own(start, tmp_path):
    """Another run of the same forking process has none."""
    folder = tmp_path / "libraries"
    (folder / "yaml").mkdir(parents=True)
    (folder / "yaml" / "__init__.py").write_text("")
    text = "import yaml\nprint(yaml.__file__)\n"
    assert "site-packages" in printed(start(text))
    assert printed(start(text, environment={"PYTHONPATH": str(folder)})) == f"{folder / 'yaml' / '__init__.py'}\n"
    assert "site-packages" in printed(start(text))


def test_a_job_with_a_sitecustomize_of_its_own_runs_it(start, tmp_path):
    folder = tmp_path / "libraries"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import sys\nsys.customised = True\n")
    text = "import sys\nimport numpy\nprint(hasattr(sys, 'customised'))\n"
    assert printed(start(text)) == "False\n"
    assert printed(start(text, environment={"PYTHONPATH": str(folder)})) == "True\n"
    assert printed(start(text, environment={"PYTHONPATH": "libraries"})) == "True\n"


def test_a_folder_that_cannot_be_read_harms_no_other_job(start, owner):
    printed(start("import numpy\n"))
    before = processes_of(owner)
    assert printed(start("import numpy\nprint('done')\n", environment={"PYTHONPATH": 300 * "x"})) == "done\n"
    assert processes_of(owner) == before


def test_any_other_command_is_run_as_it_is():
    command, environment = [SHELL, "-c", "echo 'as it is'"], os.environ | OF_THE_SHELL
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "as it is\n"


def test_nothing_is_left_after_many_jobs(start, owner):
    for number in range(3):
        printed(start(f"import numpy\nprint({number})\n"))
    assert len(processes_of(owner)) >= 2
    owner.kill()
    owner.wait()
    until_true(lambda: not processes_of(owner))


LAST_WORDS = """
import atexit
import sys
import threading
import time
from pathlib import Path

atexit.register(Path("at-exit").touch)
left_open = open("left-open", "w")
left_open.write("all of it")
print("no line end", end="")
sys.stderr.write("nor here")


def late():
    time.sleep(0.3)
    print(", and late", end="")


if {waits}:
    threading.Thread(target=late).start()
"""


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("forks", ["", "off"])
def test_a_job_ends_as_a_python_does(start, tmp_path, waits, forks):
    job = start(LAST_WORDS.format(waits=waits), forks)
    assert job.communicate(timeout=HANGS_AFTER_S) == (f"no line end{', and late' if waits else ''}", "nor here")
    assert job.returncode == 0
    assert (tmp_path / "at-exit").exists()
    assert (tmp_path / "left-open").read_text() == "all of it"


def test_what_cannot_be_printed_is_an_error_at_the_end(start):
    found = []
    for forks in ("", "off"):
        job = start("import os\nos.close(1)\nprint('to nobody')\n", forks)
        job.communicate(timeout=HANGS_AFTER_S)
        found.append(job.returncode)
    assert found[0] == found[1] != 0


def test_a_machine_with_more_memory_keeps_more_nodes():
    assert [most_nodes(gigabytes << 30) for gigabytes in (0, 4, 12, 64)] == [6, 6, 12, 24]
