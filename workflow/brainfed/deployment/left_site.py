"""The record of what leaves a site, written before it leaves: in a file, a line a tensor or value; on the terminal."""

import csv
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from sys import stderr

from brainfed.federation.apart.packet import Packet

COLUMNS = ("time", "job", "kind", "round", "name", "shape", "type", "bytes")


class LeftSite:
    """Appends to a table.

    Args:
        path: of the table.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def __call__(self, request: Packet) -> None:
        """Note a request; the file is on the disk when this returns."""
        now, about = datetime.now(UTC).isoformat(timespec="seconds"), request.about
        lead = (now, about.get("key", ""), request.kind, about.get("round", ""))
        rows = [
            (*lead, name, "x".join(map(str, array.shape)), array.dtype.name, array.nbytes)
            for name, array in request.tensors.items()
        ]
        words = {name: value for name, value in about.items() if name not in ("key", "round")}
        rows += [(*lead, name, "", "words", len(json.dumps(value))) for name, value in words.items()]
        new = not self._path.exists()
        with self._path.open("a", newline="", encoding="utf-8") as file:
            table = csv.writer(file, delimiter="\t", lineterminator="\n")
            if new:
                table.writerow(COLUMNS)
            table.writerows(rows)
            file.flush()
            os.fsync(file.fileno())
        if request.tensors:
            names = ", ".join(f"{name} {'x'.join(map(str, each.shape))}" for name, each in request.tensors.items())
            when = f", round {int(about['round']) + 1}" if "round" in about else ""
            print(f"leaves this site ({about.get('key', '')}{when}): {names}; {request.size:,} bytes", file=stderr)
