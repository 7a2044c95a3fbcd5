"""Seconds, bytes and processor time a round of a federation between sites, on one machine over the real transport.

    python benchmarks/sites.py [--sites 3 10 50] [--sizes 25000 1300000] [--rounds 5]
                               [--sums open masked] [--database]

Each row is a study with FedAvg: a SuperLink with TLS and known keys, a SuperNode a site, and the coordinator in its
ServerApp, which keeps its state on the disk. At the sites a stand-in answers at once with a model of so many float32
numbers (`site_ends.py`): what is left is the transport and the coordinator. The first two rounds of a row do not count.
A masked sum is secure: the coordinator sees the sum of all models alone, and a round has four more steps.
Bytes of packets are those at the socket of a site; bytes of TCP are what its SuperNode sends and receives, from `ss`,
with TLS, HTTP and the looks for messages, and without headers of IP and TCP. Processor seconds are those of
/proc/PID/stat, memory is the peak of VmHWM. Needs Linux and `make install-sites`.
"""

import argparse
import itertools
import json
import os
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from sys import stderr

from site_ends import COUNTED, MARKS, PID
from site_meters import Sockets, cpu, peak

import brainfed
from brainfed.sites.flower import (
    FlowerFolder,
    Running,
    make_certificate,
    make_key_pair,
    start,
    start_run,
    start_superlink,
    start_supernode,
    together,
)

HERE = Path(__file__).resolve().parent
WARM = 2
"""Rounds that do not count."""
AT_ONCE = 4
"""Processes of Flower's that are started side by side."""
LOOK_S, SOCKETS_S = 0.02, 0.5
"""Between two looks for the end of a round, and at the sockets: httpx closes one after 5 s without use."""
LIMIT_S = 600.0
PACKETS = ("packets up, down (MB)", "of a site (kB)")
COLUMNS = (
    *("sites", "sums", "numbers", "seconds", *PACKETS, "TCP of a site (kB)"),
    *("CPU s: SuperLink", "ServerApp", "a SuperNode", "all stand-ins"),
    *("peak MiB: SuperLink", "of the ServerApp", "of a SuperNode"),
)


@dataclass(frozen=True)
class Study:
    """The processes of one federation.

    Attributes:
        folder: of Flower's files.
        names: of the sites.
        sums: `open` or `masked`.
        superlink: the coordinator's server.
        stand_ins: of all sites.
        nodes: a SuperNode a site.
    """

    folder: FlowerFolder
    names: tuple[str, ...]
    sums: str
    superlink: Running
    stand_ins: Running
    nodes: tuple[Running, ...]

    @property
    def pids(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Of SuperLink, ServerApp, SuperNodes and stand-ins."""
        serverapp = int((self.folder.root / PID).read_text())
        nodes = [each.process.pid for each in self.nodes]
        return [self.superlink.process.pid], [serverapp], nodes, [self.stand_ins.process.pid]

    def marks(self) -> list[float]:
        """When each step ended."""
        path = self.folder.root / MARKS
        return [float(line) for line in path.read_text().splitlines()] if path.exists() else []


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def begin(
    folder: FlowerFolder,
    names: tuple[str, ...],
    sums: str,
    sizes: Sequence[int],
    rounds: int,
    disk: bool,
    running: list[Running],
    pool: Executor,
) -> Study:
    """Start all processes of a study but its run, as `brainfed coordinate` and `brainfed join` do."""
    make_certificate(folder.certificate, folder.certificate_key, ["localhost"])
    for name in names:
        make_key_pair(folder.private_key(name), folder.public_key(name))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    folder.write_connection(f"127.0.0.1:{port}")
    folder.write_app("site_ends:coordinate", names, {"masked": sums == "masked"})
    superlink = start_superlink(folder, names, "127.0.0.1", port, folder.root / "superlink.db" if disk else None)
    running.append(superlink)
    words = [str(folder.root), ",".join(map(str, sizes)), str(WARM + rounds), ",".join(names), sums]
    stand_ins = start(
        "stand-ins", [sys.executable, str(HERE / "site_ends.py"), *words], folder.environment(), folder.log("stand-ins")
    )
    running.append(stand_ins)

    def node(name: str) -> Running:
        started = start_supernode(folder, name, f"127.0.0.1:{port}", folder.root / name / "socket")
        running.append(started)
        return started

    try:
        nodes = tuple(pool.map(node, names))
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    return Study(folder, names, sums, superlink, stand_ins, nodes)


def reach(study: Study, run: Running, steps: int, sockets: Sockets) -> None:
    """Wait until so many steps have ended."""
    end, looked = time.monotonic() + LIMIT_S, 0.0
    while len(study.marks()) < steps:
        if run.process.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"{len(study.marks())} steps of {steps}:\n{run.tail(40)}")
        if time.monotonic() - looked > SOCKETS_S:
            sockets.look()
            looked = time.monotonic()
        time.sleep(LOOK_S)
    sockets.look()


def measured(study: Study, run: Running, training: int, size: int, rounds: int) -> dict[str, str]:
    """The columns of one training but its packets; its first step is its opening."""
    opened, sockets = training * (1 + WARM + rounds) + 1, Sockets({})
    reach(study, run, opened + WARM, sockets)
    groups = study.pids
    before, bytes_before = [[cpu(pid) for pid in pids] for pids in groups], sockets.of(groups[2])
    reach(study, run, opened + WARM + rounds, sockets)
    after, bytes_after = [[cpu(pid) for pid in pids] for pids in groups], sockets.of(groups[2])
    ends = study.marks()[opened + WARM - 1 : opened + WARM + rounds]
    spent = [(mean(late) - mean(early)) / rounds for early, late in zip(before, after, strict=True)]
    up, down = ((late - early) / rounds / 1e3 for early, late in zip(bytes_before, bytes_after, strict=True))
    columns = [
        *(str(len(study.names)), study.sums, f"{size:,}"),
        f"{statistics.median(late - early for early, late in itertools.pairwise(ends)):.2f}",
        f"{up:,.0f}, {down:,.0f}",
        *(f"{seconds:.3f}" if seconds < 0.1 else f"{seconds:.2f}" for seconds in spent),
        *(f"{mean([peak(pid) for pid in pids]):,.0f}" for pids in groups[:3]),
    ]
    return dict(zip((name for name in COLUMNS if name not in PACKETS), columns, strict=True))


def packets(study: Study, size: int) -> dict[str, str]:
    """The columns of the bytes at the sites' sockets in one round."""
    counted = json.loads((study.folder.root / COUNTED).read_text())
    down, up = (sum(each) for each in zip(*(site[str(size)] for site in counted.values()), strict=True))
    sites = len(study.names)
    return {
        PACKETS[0]: f"{up / 1e6:.2f}, {down / 1e6:.2f}",
        PACKETS[1]: f"{up / sites / 1e3:,.0f}, {down / sites / 1e3:,.0f}",
    }


def rows(count: int, sums: str, sizes: Sequence[int], rounds: int, disk: bool) -> Iterator[dict[str, str]]:
    """Run a study of so many sites with a training of each size."""
    names = tuple(f"site-{number:02d}" for number in range(count))
    # A SuperNode ends with the thread that started it: the threads outlive the study.
    with (
        tempfile.TemporaryDirectory(prefix="sites-", dir="/tmp") as temporary,
        ThreadPoolExecutor(AT_ONCE) as pool,
        together() as running,
    ):
        started = time.monotonic()
        study = begin(FlowerFolder(Path(temporary)), names, sums, sizes, rounds, disk, running, pool)
        run = start_run(study.folder)
        running.append(run)
        nodes = mean([cpu(node.process.pid) for node in study.nodes])
        print(
            f"{count} sites: started in {time.monotonic() - started:.0f} s, {nodes:.1f} CPU s a SuperNode", file=stderr
        )
        for training, size in enumerate(sizes):
            yield measured(study, run, training, size, rounds) | packets(study, size)
        run.process.wait(LIMIT_S)


def load() -> str:
    return ", ".join(f"{each:.1f}" for each in os.getloadavg())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, nargs="+", default=[3, 10, 50])
    parser.add_argument("--sizes", type=int, nargs="+", default=[25_000, 1_300_000], help="float32 numbers of a model")
    parser.add_argument("--rounds", type=int, default=5, help="of a row, after the first two")
    parser.add_argument("--sums", nargs="+", choices=["open", "masked"], default=["open"])
    parser.add_argument("--database", action="store_true", help="the SuperLink keeps its state in a file")
    chosen = parser.parse_args()
    # Flower's processes import both from here.
    os.environ["PYTHONPATH"] = os.pathsep.join((str(Path(brainfed.__file__).parents[1]), str(HERE)))
    print(f"load average before: {load()}", file=stderr)
    print(f"| {' | '.join(COLUMNS)} |\n|{'---:|' * len(COLUMNS)}", flush=True)
    for count, sums in itertools.product(chosen.sites, chosen.sums):
        for row in rows(count, sums, chosen.sizes, chosen.rounds, chosen.database):
            print(f"| {' | '.join(row[name] for name in COLUMNS)} |", flush=True)
    print(f"load average after: {load()}", file=stderr)


if __name__ == "__main__":
    main()
