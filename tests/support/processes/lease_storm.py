"""Many jobs that lease fake devices while some of them are killed, and what an observer saw of it."""

import os
import random
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import lazy_loader

import brainfed
from support.processes.fake_driver import FakeDriver

AT_ONCE = 40
PATIENCE = 60.0
PLACES = 2

# A device's marker has PLACES bytes. A job that shares takes one of them, one that does not takes all. These are POSIX
# locks, which the kernel keeps apart from the lease's own and gives back before them when a process is killed.
JOB = f"""
import fcntl, os, sys, time
from pathlib import Path
from brainfed.runtime.devices._lease import Patience
from brainfed.runtime.devices import lease

folder, name, fate, seconds = Path(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4])
alone = os.environ["BRAINFED_JOBS_PER_GPU"] == "1"
events = os.open(folder / "events", os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def note(what, uuid):
    os.write(events, f"{{what}} {{name}} {{uuid}} {{time.monotonic_ns()}}\\n".encode())


def occupy(marker):
    for length, start in [({PLACES}, 0)] if alone else [(1, byte) for byte in range({PLACES})]:
        try:
            fcntl.lockf(marker, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)
        except OSError:
            continue
        return True
    return False


with lease(1, purpose=name, patience=Patience(poll=0.05, grace=60.0)) as leased:
    (uuid,) = leased.uuids
    with (folder / uuid).open("a") as marker:
        note("took" if occupy(marker) else "collided", uuid)
        time.sleep(3600.0 if fate.startswith("killed") else seconds)
        if fate == "fails":
            raise SystemExit(1)
        note("gave", uuid)
"""


@dataclass
class Member:
    """One job: what becomes of it, and what was seen of it (nanoseconds of the monotonic clock)."""

    fate: str
    seconds: float
    jobs_per_gpu: int
    process: "subprocess.Popen[bytes] | None" = None
    started: float = 0.0
    killed: int | None = None
    took: tuple[str, int] | None = None
    gave: int | None = None

    def is_due(self) -> bool:
        """Whether it is to be killed now."""
        if self.fate == "killed anywhere":
            return time.monotonic() > self.started + self.seconds
        held = time.monotonic() - self.took[1] / 1e9 if self.took else 0.0
        return self.fate == "killed holding" and held > self.seconds


@dataclass
class Storm:
    """A folder, a driver of fake devices, and the jobs.

    Of all jobs a third ends well, a sixth fails, a quarter is killed with a device in its hands and a quarter anywhere
    in its first three seconds: while it starts, waits, tries or holds.
    """

    folder: Path
    driver: FakeDriver
    members: list[Member]
    collided: list[str] = field(default_factory=list)

    @classmethod
    def brew(cls, folder: Path, devices: int, jobs: int, jobs_per_gpu: Sequence[int], seed: int) -> "Storm":
        """Draw what becomes of every job; workflows with other numbers of jobs a GPU take turns."""
        rng = random.Random(seed)
        fates = ("ends", "ends", "ends", "ends", "fails", "fails", *["killed holding"] * 3, *["killed anywhere"] * 3)
        members = []
        for number in range(jobs):
            fate = fates[number % len(fates)]
            seconds = rng.uniform(0.0, 3.0) if fate == "killed anywhere" else rng.uniform(0.2, 1.0)
            members.append(Member(fate, seconds, jobs_per_gpu[number % len(jobs_per_gpu)]))
        rng.shuffle(members)
        return cls(folder, FakeDriver(folder, [f"GPU-{device:04d}" for device in range(devices)]), members)

    def run(self) -> None:
        """Start the jobs, at most AT_ONCE together, kill those whose time has come, and wait for all."""
        waiting, alive = deque(self.members), list[Member]()
        moved = time.monotonic()
        try:
            while waiting or alive:
                assert time.monotonic() < moved + PATIENCE, f"{len(alive)} jobs neither end nor get a device"
                while waiting and len(alive) < AT_ONCE:
                    alive.append(self.start(waiting.popleft()))
                self.observe()
                for member in alive:
                    if member.killed is None and member.is_due():
                        member.killed = time.monotonic_ns()
                        member.process.kill()
                left = [member for member in alive if member.process.poll() is None]
                moved = moved if len(left) == len(alive) else time.monotonic()
                alive = left
                time.sleep(0.005)
        finally:
            for member in alive:
                member.process.kill()
                member.process.wait()
        self.observe()

    def start(self, member: Member) -> Member:
        """Start one job as a process of its own."""
        name = str(self.members.index(member))
        command = [sys.executable, "-S", "-c", JOB, str(self.folder), name, member.fate, str(member.seconds)]
        with (self.folder / f"{name}.log").open("wb") as log:
            member.process = subprocess.Popen(command, stderr=log, env=self.environment(member.jobs_per_gpu))
        member.started = time.monotonic()
        return member

    def environment(self, jobs_per_gpu: int) -> dict[str, str]:
        """Nothing of the real machine's devices."""
        kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "LANG") if name in os.environ}
        packages = os.pathsep.join(str(Path(each.__file__).parents[1]) for each in (brainfed, lazy_loader))
        own = {"PYTHONPATH": packages, "BRAINFED_JOBS_PER_GPU": str(jobs_per_gpu)}
        return kept | self.driver.environment | own

    def observe(self) -> None:
        """Read what the jobs noted."""
        events = self.folder / "events"
        self.collided = []
        for line in events.read_text().splitlines() if events.exists() else []:
            what, name, uuid, when = line.split()
            member = self.members[int(name)]
            if what == "gave":
                member.gave = int(when)
            else:
                member.took = (uuid, int(when))
            if what == "collided":
                self.collided.append(f"job {name} on {uuid}")

    def crowds(self) -> list[str]:
        """Moments at which a device was surely held by more jobs than one of them bears."""
        changes = []
        for member in self.members:
            if member.took is not None:
                uuid, begun = member.took
                ended = member.gave or member.killed
                if ended is not None and ended > begun:
                    changes += [(begun, 1, uuid, member.jobs_per_gpu), (ended, -1, uuid, member.jobs_per_gpu)]
        held: dict[str, list[int]] = {uuid: [] for uuid in self.driver.uuids}
        found = []
        for when, change, uuid, bears in sorted(changes):
            if change > 0:
                held[uuid].append(bears)
                if len(held[uuid]) > min(held[uuid]):
                    found.append(f"{uuid} at {when}: {held[uuid]}")
            else:
                held[uuid].remove(bears)
        return found

    def lease_all(self) -> list[str]:
        """Lease every device at once, whole, and name them: possible only where nothing is left over."""
        source = (
            "import sys\nfrom brainfed.runtime.devices import lease\n"
            "with lease(int(sys.argv[1])) as leased:\n    print(*leased.uuids)\n"
        )
        done = subprocess.run(
            [sys.executable, "-S", "-c", source, str(len(self.driver.uuids))],
            env=self.environment(1),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stdout.split()
