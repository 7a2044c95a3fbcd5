"""A safetensors file that is written block after block, so that no array need be in memory as a whole."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from brainfed.runtime.artefacts import METADATA_KEY, atomic, canonical_json

NAMES = {"int64": "I64", "float64": "F64", "float32": "F32"}
"""Type -> its name in the header; safetensors writes arrays in this order of their types, then by name."""
ALIGNMENT = 8

Append = Callable[[str, NDArray[Any]], None]


@contextmanager
def writing_blocks(
    path: str | Path, shapes: Mapping[str, tuple[DTypeLike, tuple[int, ...]]], metadata: Mapping[str, Any]
) -> Iterator[Append]:
    """Yield a function that appends a block of rows to one of the arrays; the bytes are those of `write_arrays`.

    Args:
        path: of the file.
        shapes: array -> type (float32, float64 or int64) and shape.
        metadata: JSON-able metadata.

    Raises:
        ValueError: a block does not fit, or an array is not complete at the end.
        FullDiskError: there is no room.
    """
    order = sorted(shapes, key=lambda name: ([*NAMES].index(np.dtype(shapes[name][0]).name), name))
    header: dict[str, Any] = {"__metadata__": {METADATA_KEY: canonical_json(dict(metadata))}}
    start: dict[str, int] = {}
    offset = 0
    for name in order:
        kind, shape = np.dtype(shapes[name][0]), shapes[name][1]
        start[name], end = offset, offset + kind.itemsize * math.prod(shape)
        header[name] = {"dtype": NAMES[kind.name], "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    first = ALIGNMENT + len(text)
    written = dict.fromkeys(order, 0)
    with atomic(path, first + offset) as temporary, temporary.open("wb") as file:
        file.write(len(text).to_bytes(ALIGNMENT, "little") + text)

        def append(name: str, block: NDArray[Any]) -> None:
            kind, shape = np.dtype(shapes[name][0]), shapes[name][1]
            if block.dtype != kind or block.shape[1:] != shape[1:] or written[name] + len(block) > shape[0]:
                raise ValueError(
                    f"{name}: expected a block of {kind} {shape} after row {written[name]}, found {block.dtype} "
                    f"{block.shape}"
                )
            file.seek(first + start[name] + written[name] * kind.itemsize * math.prod(shape[1:]))
            file.write(np.ascontiguousarray(block).data)
            written[name] += len(block)

        yield append
        lacking = [name for name in order if written[name] < shapes[name][1][0]]
        if lacking:
            raise ValueError(f"{path}: the arrays {lacking} are not complete")
