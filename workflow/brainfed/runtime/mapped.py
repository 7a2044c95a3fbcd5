"""Arrays of an artefact without a copy in memory: pages of the file are read when they are used."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from brainfed.runtime.artefacts import ArrayFile, read_arrays

DTYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64}
LENGTH_BYTES = 8
"""A safetensors file is the length of its header (little-endian), the header in JSON, the arrays."""
METADATA = "__metadata__"
"""The one name in a header that is no array."""


def map_array(path: Path | str, name: str) -> ArrayFile:
    """The array `name` of float32, float64 or int64, read-only, and the metadata.

    Raises:
        UserError: the file is missing, damaged or without that array.
    """
    metadata = read_arrays(path, []).metadata
    length, held = _header(path)
    header = held.get(name)
    if header is None or header["dtype"] not in DTYPES or 0 in header["shape"]:
        return read_arrays(path, [name])
    offset = LENGTH_BYTES + length + header["data_offsets"][0]
    mapped = np.memmap(path, DTYPES[header["dtype"]], mode="r", offset=offset, shape=tuple(header["shape"]))
    return ArrayFile({name: np.asarray(mapped)}, metadata)


def array_shapes(path: Path | str) -> dict[str, tuple[int, ...]]:
    """Array -> its shape, by the header of the file alone.

    Raises:
        UserError: the file is missing or damaged.
    """
    read_arrays(path, [])
    _, held = _header(path)
    return {name: tuple(array["shape"]) for name, array in sorted(held.items()) if name != METADATA}


def _header(path: Path | str) -> tuple[int, dict[str, Any]]:
    """Length of the header in bytes, and the header."""
    with Path(path).open("rb") as file:
        length = int.from_bytes(file.read(LENGTH_BYTES), "little")
        return length, json.loads(file.read(length))
