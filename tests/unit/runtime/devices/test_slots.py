"""Jobs that share a GPU: their number, names and memory, on fake devices; and many that are killed."""

import errno
import fcntl
import os
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack, contextmanager
from select import select

import pytest

from brainfed.runtime import UserError
from brainfed.runtime.devices import JOBS_PER_GPU, jobs_per_gpu, lease
from brainfed.runtime.devices import _lease as slots
from brainfed.runtime.devices._driver import VISIBLE
from brainfed.runtime.devices._lease import UNKNOWN, Holder, holders_of, lock_folder, locked, take
from support.processes.fake_driver import FakeDriver, refused
from support.processes.lease_storm import Storm

UUIDS = ("GPU-aaaa-1", "GPU-bbbb-2")
HOLD = """
import sys
from brainfed.runtime.devices._lease import Patience
from brainfed.runtime.devices import lease

with lease(int(sys.argv[1]), purpose=sys.argv[2], patience=Patience(poll=0.02, grace=0.1)) as leased:
    print(*leased.uuids, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Two free devices that two jobs may share."""
    gpus = FakeDriver(tmp_path, UUIDS)
    for name in (VISIBLE, "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (gpus.environment | {JOBS_PER_GPU: "2"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    return gpus


@contextmanager
def holding(number=1, purpose="", jobs=2):
    """A process that holds devices, or waits for them, until it is killed at the end of the `with`."""
    command = [sys.executable, "-c", HOLD, str(number), purpose]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, env=os.environ | {JOBS_PER_GPU: str(jobs)}, **streams)
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=60)


def first_word(process):
    return process.stdout.readline().strip()


def complaint(process):
    """Its first line of complaint; a lease in its place fails at once."""
    ready, _, _ = select([process.stdout, process.stderr], [], [], 600)
    assert ready == [process.stderr]
    return process.stderr.readline().strip()


def test_jobs_spread_over_the_devices_before_they_share_one(fake):
    with ExitStack() as running:
        leased = [first_word(running.enter_context(holding())) for _ in range(4)]
        assert leased == [*UUIDS, *UUIDS]
        fifth = running.enter_context(holding())
        assert complaint(fifth).startswith("waiting for 1 of 2 GPU(s), other jobs hold them: GPU-aaaa-1 pid ")


def test_a_shared_lease_says_so(fake):
    with lease(1) as leased:
        assert leased.message == "GPU GPU-aaaa-1, shared by up to 2 jobs"


def test_one_job_never_gets_two_places_on_one_device(fake):
    with holding(2) as both, holding(2) as too:
        assert first_word(both) == first_word(too) == " ".join(UUIDS)


@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 1)])
def test_a_job_that_shares_with_none_is_alone_in_either_order(fake, first, second):
    fake.uses(0)
    with holding(purpose="tables.log", jobs=first) as before:
        assert first_word(before) == UUIDS[0]
        with holding(jobs=second) as after:
            message = f"waiting for 1 of 1 GPU(s), other jobs hold them: {UUIDS[0]} pid {before.pid} (tables.log)"
            assert complaint(after) == message
            before.kill()
            assert first_word(after) == UUIDS[0]


def test_of_many_holders_some_are_named(fake):
    with ExitStack() as running:
        for _ in range(6):
            first_word(running.enter_context(holding(jobs=3)))
        message = complaint(running.enter_context(holding(jobs=3)))
        assert message.count(" pid ") == 4
        assert message.endswith(" and 2 more")


def test_memory_of_a_job_that_shares_is_no_stranger_s(fake):
    with ExitStack() as running:
        first = running.enter_context(holding())
        assert first_word(first) == UUIDS[0]
        second = running.enter_context(holding())
        assert first_word(second) == UUIDS[1]
        fake.uses(70_000, 70_000)
        # On the first device a job of ours has nearly all of it, on the second nearly nothing.
        fake.names((UUIDS[0], first.pid, 65_000), (UUIDS[0], 1, 5_000), (UUIDS[1], second.pid, 500))
        with lease(1) as leased:
            assert leased.uuids == UUIDS[:1]
        fake.names((UUIDS[0], first.pid, 5_000), (UUIDS[1], second.pid, 500))
        refused("GPU-aaaa-1, GPU-bbbb-2: more than 50% of the memory")


@pytest.mark.parametrize("used", ["[N/A]", "[Insufficient Permissions]"])
def test_where_the_driver_names_no_process_memory_is_the_holders(fake, used):
    with holding() as first:
        assert first_word(first) == UUIDS[0]
        fake.uses(70_000, 70_000)
        fake.names((UUIDS[0], first.pid, used), (UUIDS[0], 1, 70_000))
        with lease(1) as leased:
            assert leased.uuids == UUIDS[:1]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 4}', '{"pid": "x", "purpose": "", "jobs_per_gpu": 2}'])
def test_a_holder_without_a_name_shares_with_no_job(fake, text):
    fake.locks.mkdir()
    with ExitStack() as held:
        take(UUIDS[0], fake.locks, Holder(1, "", 2), held)
        (fake.locks / f"{UUIDS[0]}.0.lock").write_text(text)
        assert holders_of(UUIDS[0], fake.locks) == (UNKNOWN,)
        for _ in range(2):
            with lease(1) as leased:
                assert leased.uuids == UUIDS[1:]
    assert holders_of(UUIDS[0], fake.locks) == ()


def test_the_default_is_one_job_a_device(monkeypatch):
    monkeypatch.delenv(JOBS_PER_GPU, raising=False)
    assert jobs_per_gpu() == 1


@pytest.mark.parametrize("value", ["", "0", "-1", "1.5", "two", " 2", "²"])
def test_a_wrong_number_of_jobs_is_refused(monkeypatch, value):
    monkeypatch.setenv(JOBS_PER_GPU, value)
    sentence = f"BRAINFED_JOBS_PER_GPU: expected a whole number from 1, .* found {value!r}; correct it or unset it"
    with pytest.raises(UserError, match=sentence):
        jobs_per_gpu()


def test_locks_lie_in_one_folder_whatever_the_temporary_folder_is(monkeypatch, tmp_path):
    monkeypatch.delenv("BRAINFED_LOCKS", raising=False)
    monkeypatch.setattr(slots, "TEMPORARY", tmp_path / "common")
    folders = set()
    for name in ("one", "other"):
        monkeypatch.setenv("TMPDIR", str(tmp_path / name))
        folders.add(lock_folder())
    assert folders == {tmp_path / "common" / f"brainfed-{os.getuid()}" / "gpu"}


def test_a_lease_ends_though_a_forked_child_lives_on(fake):
    awaited, end = os.pipe()
    with lease(1):
        child = os.fork()
        if child == 0:
            os.close(end)
            os.read(awaited, 1)
            os._exit(0)
    try:
        assert holders_of(UUIDS[0], fake.locks) == ()
    finally:
        os.close(end)
        os.waitpid(child, 0)


def test_a_disk_without_locks_is_named(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    message = r"gate\.lock: this lock file .* cannot be used \(No locks available\); name a folder of your own in"
    with pytest.raises(UserError, match=message), locked(tmp_path / "gate.lock"):
        pass


def test_a_lock_file_that_cannot_be_opened_is_named(tmp_path):
    (tmp_path / "gate.lock").mkdir()
    message = r"gate\.lock: this lock file .* name a folder of your own in BRAINFED_LOCKS"
    with pytest.raises(UserError, match=message), locked(tmp_path / "gate.lock"):
        pass


DEVICES = 8
JOBS = int(os.environ.get("BRAINFED_LEASE_JOBS", "24"))


@pytest.mark.parametrize("jobs_per_gpu", [(1,), (1, 2)], ids=["one-workflow", "two-workflows"])
@pytest.mark.full("Hundreds of jobs, some of them killed.")
def test_no_device_is_held_twice_and_none_is_lost_when_jobs_are_killed(tmp_path, jobs_per_gpu):
    storm = Storm.brew(tmp_path, DEVICES, JOBS, jobs_per_gpu, seed=5)
    storm.run()
    assert storm.collided == []
    assert storm.crowds() == []
    ended = Counter((member.fate, member.process.returncode) for member in storm.members if member.process)
    fates = Counter(member.fate for member in storm.members)
    assert ended["ends", 0] == fates["ends"]
    assert ended["fails", 1] == fates["fails"]
    assert ended["killed holding", -9] == fates["killed holding"]
    assert ended["killed anywhere", -9] == fates["killed anywhere"]
    used = {member.took[0] for member in storm.members if member.took}
    assert used == set(storm.driver.uuids)
    assert storm.lease_all() == list(storm.driver.uuids)
