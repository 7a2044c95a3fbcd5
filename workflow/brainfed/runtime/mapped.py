"""Arrays of an artefact without a copy in memory: pages of the file, read as they are touched."""

import json
from pathlib import Path

import numpy as np

from brainfed.runtime.artefacts import ArrayFile, read_arrays

DTYPES = {"F32": np.float32, "F64": np.float64}
LENGTH_BYTES = 8
"""A safetensors file is the length of its header (little-endian), the header in JSON, the arrays."""


def map_array(path: Path | str, name: str) -> ArrayFile:
    """The array `name` of float32 or float64, read-only, and the metadata.

    Raises:
        UserError: the file is missing, damaged or without that array.
    """
    metadata = read_arrays(path, []).metadata
    with Path(path).open("rb") as file:
        length = int.from_bytes(file.read(LENGTH_BYTES), "little")
        told = json.loads(file.read(length)).get(name)
    if told is None or told["dtype"] not in DTYPES or 0 in told["shape"]:
        return read_arrays(path, [name])
    offset = LENGTH_BYTES + length + told["data_offsets"][0]
    mapped = np.memmap(path, DTYPES[told["dtype"]], mode="r", offset=offset, shape=tuple(told["shape"]))
    return ArrayFile({name: np.asarray(mapped)}, metadata)
