"""A SLURM of one node with two counted fake GPUs, private to the tests: munged, slurmctld and slurmd, no systemd.

The GPUs are character devices with the numbers of /dev/null: a plain file would be counted and set no
CUDA_VISIBLE_DEVICES. Memory is scheduled and not enforced, as there are no cgroups. Everything listens on 127.0.0.1.
"""

import os
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TypeVar

import psutil

DAEMONS = ("slurmd", "slurmctld", "munged")
COMMANDS = (*DAEMONS, "sbatch", "srun", "squeue", "scancel", "scontrol", "sinfo")
# The plugin drops SLURM_CONF before a job's inner srun, which then reads this file.
SYSTEM_CONFIGURATION = Path("/etc/slurm/slurm.conf")
GPUS, CPUS = 2, 4
WAIT = 30.0
Seen = TypeVar("Seen")
SLURM_CONF = """\
ClusterName=brainfed
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={controller_port}
SlurmdPort={node_port}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket={base}/munge/munge.socket,cred_expire=5
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool
SlurmctldPidFile={base}/pids/slurmctld.pid
SlurmdPidFile={base}/pids/slurmd.pid
SlurmctldLogFile={base}/log/slurmctld.log
SlurmdLogFile={base}/log/slurmd.log
SwitchType=switch/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
JobAcctGatherType=jobacct_gather/linux
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MinJobAge=3600
KillWait=2
MessageTimeout=5
GresTypes=gpu
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={cpus} ThreadsPerCore=1 \
RealMemory=64000 Gres=gpu:fake:{gpus} State=UNKNOWN
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE DefMemPerCPU=500 State=UP OverSubscribe=NO PriorityTier=1 \
GraceTime=120
PartitionName=urgent Nodes={host} MaxTime=INFINITE DefMemPerCPU=500 State=UP OverSubscribe=NO PriorityTier=2
"""


def unavailable() -> str | None:
    """Why no SLURM can be started here, in one sentence; None where one can."""
    missing = [command for command in COMMANDS if shutil.which(command) is None]
    if missing:
        return f"SLURM is not installed (Debian: slurm-wlm and munge), missing: {', '.join(missing)}"
    if os.geteuid() != 0:
        return "fake GPUs are device files, which only root may make"
    if SYSTEM_CONFIGURATION.exists():
        return f"{SYSTEM_CONFIGURATION} exists: this machine belongs to a SLURM"
    return None


class Cluster:
    """A running SLURM whose files lie in one folder.

    Attributes:
        base: the folder.
        host: the node's name.
    """

    def __init__(self, base: Path) -> None:
        self.base = base
        self.host = socket.gethostname().partition(".")[0]
        self.configuration = base / "slurm.conf"

    def start(self) -> None:
        """Start the daemons and wait for the node."""
        for name in ("munge", "state", "spool", "log", "dev", "pids"):
            (self.base / name).mkdir(parents=True)
        self._configure()
        munge = self.base / "munge"
        key = munge / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        SYSTEM_CONFIGURATION.parent.mkdir(exist_ok=True)
        # What a killed run of these tests left points nowhere.
        SYSTEM_CONFIGURATION.unlink(missing_ok=True)
        SYSTEM_CONFIGURATION.symlink_to(self.configuration)
        _run(
            *("munged", "--force", f"--socket={munge / 'munge.socket'}", f"--key-file={key}"),
            *(f"--pid-file={self.base / 'pids' / 'munged.pid'}", f"--seed-file={munge / 'munged.seed'}"),
            f"--log-file={self.base / 'log' / 'munged.log'}",
        )
        _run("slurmctld", "-f", str(self.configuration))
        self.start_node()

    def start_node(self) -> None:
        """Start slurmd and wait until its node takes jobs."""
        _run("slurmd", "-f", str(self.configuration), "-N", self.host)
        self.ask("scontrol", "update", f"NodeName={self.host}", "State=RESUME")
        wait_until(lambda: self.ask("sinfo", "-h", "-o", "%T") in ("idle", "mixed", "allocated"), "SLURM's node")

    def crash_node(self) -> None:
        """End the node as a power cut would: slurmd, the managers of its job steps and every process below them.

        That it is down is told to the controller, which would find out by itself after minutes (SlurmdTimeout).
        """
        end(self._on_the_node(), psutil.Process.kill)
        self.ask("scontrol", "update", f"NodeName={self.host}", "State=DOWN", "Reason=crashed")

    def ask(self, *command: str) -> str:
        """The answer of a SLURM command; empty where it fails."""
        with suppress(subprocess.TimeoutExpired):
            return subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout.strip()
        return ""

    def running(self) -> dict[str, str]:
        """Job id -> comment of the running jobs; the plugin's comment names rule and wildcards."""
        lines = self.ask("squeue", "-h", "-t", "RUNNING", "-o", "%i|%k").splitlines()
        return dict(line.split("|", 1) for line in lines)

    def preempt(self) -> None:
        """Submit a job that takes the whole node from the jobs there, which SLURM gives notice of two minutes."""
        self.ask("sbatch", "--partition=urgent", "--exclusive", "--comment=urgent", "--output=/dev/null", "--wrap=true")

    def stop(self) -> None:
        """End what `start` started with the jobs that still run, and nothing else."""
        try:
            end(self._on_the_node(), psutil.Process.kill)
            end(self._daemons(), psutil.Process.terminate)
        finally:
            if SYSTEM_CONFIGURATION.is_symlink() and SYSTEM_CONFIGURATION.readlink() == self.configuration:
                SYSTEM_CONFIGURATION.unlink()

    def _configure(self) -> None:
        controller_port, node_port = _free_ports(2)
        self.configuration.write_text(
            SLURM_CONF.format(
                host=self.host,
                base=self.base,
                cpus=CPUS,
                gpus=GPUS,
                controller_port=controller_port,
                node_port=node_port,
            )
        )
        devices = self.base / "dev"
        for number in range(GPUS):
            os.mknod(devices / f"nvidia{number}", stat.S_IFCHR | 0o666, Path("/dev/null").stat().st_rdev)
        # Looked up beside the path that the daemons are given.
        (self.base / "gres.conf").write_text(
            f"NodeName={self.host} Name=gpu Type=fake File={devices}/nvidia[0-{GPUS - 1}]\n"
        )

    def _daemons(self, *names: str) -> list[psutil.Process]:
        """The running ones of the daemons, by the files that hold their ids."""
        files = [self.base / "pids" / f"{name}.pid" for name in names or DAEMONS]
        pids = [int(file.read_text()) for file in files if file.exists()]
        return [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]

    def _on_the_node(self) -> list[psutil.Process]:
        """slurmd, the managers of its job steps, which are no children of it, and everything below them."""
        managers = [process for process in psutil.process_iter(["name"]) if process.info["name"] == "slurmstepd"]
        ours = [*self._daemons("slurmd"), *(process for process in managers if self._configured(process))]
        return [*ours, *(child for process in ours for child in _children(process))]

    def _configured(self, process: psutil.Process) -> bool:
        """Whether a process was started by this cluster (psutil reads no environment of one that has set its title)."""
        with suppress(OSError):
            environment = Path(f"/proc/{process.pid}/environ").read_bytes()
            return f"SLURM_CONF={self.configuration}".encode() in environment.split(b"\0")
        return False


def wait_until(look: Callable[[], Seen], what: str, seconds: float = WAIT) -> Seen:
    """Look until there is something, and return it.

    Raises:
        TimeoutError: there was nothing.
    """
    last = time.monotonic() + seconds
    while not (seen := look()):
        if time.monotonic() > last:
            raise TimeoutError(f"{what}: waited {seconds:.0f} s")
        time.sleep(0.1)
    return seen


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=WAIT)


def _children(process: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return process.children(recursive=True)
    return []


def end(processes: list[psutil.Process], how: Callable[[psutil.Process], None]) -> None:
    """Signal processes and wait until they are gone."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            how(process)
    _, left = psutil.wait_procs(processes, timeout=WAIT)
    for process in left:
        process.kill()


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]
