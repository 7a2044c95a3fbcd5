"""The record of what leaves a site, written before it leaves: in a file, a line a tensor or value; on the terminal.

Numbers of which the coordinator needs the sum alone leave masked, 8 bytes each, in every try to add them up. Their
names, shapes, types and bounds leave open, with a fingerprint: the lines `bounds` and `fingerprint`. Rounds count
from 1, here and in every sentence; in a request they count from 0.
"""

import csv
import json
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from numpy.typing import NDArray

from brainfed.federation.apart.packet import Packet
from brainfed.federation.apart.sealed import FINGERPRINT, SUM, is_sum, shapes_and_bounds

COLUMNS = ("time", "job", "kind", "round", "name", "shape", "type", "bytes")
MASKED = "masked"
"""Type of numbers that are random to all who do not add up those of all sites."""
BYTES = 8
"""Of a masked number."""


class LeftSite:
    """Appends to a table.

    Args:
        path: of the table.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        path.parent.mkdir(parents=True, exist_ok=True)

    def __call__(self, request: Packet) -> None:
        """Note a request; the file is on the disk when this returns."""
        now, about = datetime.now(UTC).isoformat(timespec="seconds"), request.about
        lead = (now, about.get("key", ""), request.kind, _round(about))
        masked = is_sum(request)
        kinds = {name: MASKED if masked else array.dtype.name for name, array in request.tensors.items()}
        rows = [
            (*lead, name, _shape(array), kinds[name], _bytes(array, masked)) for name, array in request.tensors.items()
        ]
        words = {name: value for name, value in about.items() if name not in ("key", "round", SUM)}
        if masked:
            words |= {"bounds": [about[SUM], shapes_and_bounds(request)], "fingerprint": " " * FINGERPRINT}
        rows += [(*lead, name, "", "words", len(json.dumps(value))) for name, value in words.items()]
        with self._lock, self._path.open("a", newline="", encoding="utf-8") as file:
            table = csv.writer(file, delimiter="\t", lineterminator="\n")
            if file.tell() == 0:
                table.writerow(COLUMNS)
            table.writerows(rows)
            file.flush()
            os.fsync(file.fileno())
        if request.tensors:
            names = ", ".join(f"{name} {_shape(each)}" for name, each in request.tensors.items())
            when = f", round {_round(about)}" if "round" in about else ""
            size = sum(_bytes(array, masked) for array in request.tensors.values())
            how = "leaves this site masked" if masked else "leaves this site"
            print(f"{how} ({about.get('key', '')}{when}): {names}; {size:,} bytes", file=sys.stderr)


def _round(about: Mapping[str, Any]) -> int | str:
    return int(about["round"]) + 1 if "round" in about else ""


def _shape(array: NDArray[Any]) -> str:
    """`64x91`; `1` for a single number, which has no axis."""
    return "x".join(map(str, array.shape)) or "1"


def _bytes(array: NDArray[Any], masked: bool) -> int:
    return BYTES * array.size if masked else array.nbytes
