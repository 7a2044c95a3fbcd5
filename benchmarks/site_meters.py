"""What the processes of `sites.py` spend: processor time, memory, bytes at their TCP sockets."""

import itertools
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
SOCKET = re.compile(r"^(?P<ends>\S+ +\S+ +\S+ +\S+ +\S+) +users:.*pid=(?P<pid>\d+),")


@dataclass
class Sockets:
    """Bytes at the TCP sockets of processes, of closed sockets too.

    Attributes:
        seen: process and ends of a socket -> bytes that its peer has, and bytes that it received.
    """

    seen: dict[tuple[int, str], tuple[int, int]]

    def look(self) -> None:
        """Read the counts of the sockets that are open now."""
        lines = subprocess.run(["ss", "-tinpH"], capture_output=True, text=True, check=True).stdout.splitlines()
        for ends, counts in itertools.pairwise(lines):
            if found := SOCKET.match(ends):
                sent, received = (re.search(rf"{name}:(\d+)", counts) for name in ("bytes_acked", "bytes_received"))
                self.seen[int(found["pid"]), " ".join(found["ends"].split()[3:])] = (
                    int(sent[1]) if sent else 0,
                    int(received[1]) if received else 0,
                )

    def of(self, pids: Sequence[int]) -> tuple[float, float]:
        """Mean bytes up and down of these processes."""
        counts = [counts for (pid, _), counts in self.seen.items() if pid in pids]
        up, down = (sum(each) / len(pids) for each in zip(*counts, strict=True)) if counts else (0.0, 0.0)
        return up, down


def cpu(pid: int) -> float:
    """Processor seconds of a process up to now."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def peak(pid: int) -> float:
    """Most memory that a process had, MiB."""
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0
