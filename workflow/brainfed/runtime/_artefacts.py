"""Files between jobs: safetensors for arrays, parquet for tables, all written atomically.

Same content, same bytes: metadata is one canonical JSON string, tables carry no index.
"""

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet
from numpy.typing import DTypeLike, NDArray
from safetensors import SafetensorError, safe_open

from brainfed.runtime._disk import full_disk, is_full, part_of, remove_left_over
from brainfed.runtime._errors import UserError

Append = Callable[[str, NDArray[Any]], None]

METADATA_KEY = "brainfed"
KINDS = {
    "uint64": "U64",
    "int64": "I64",
    "float64": "F64",
    "float32": "F32",
    "uint32": "U32",
    "int32": "I32",
    "float16": "F16",
    "uint16": "U16",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
}
"""Type -> its name in a safetensors header, in the order in which safetensors writes arrays: by type, then by name."""
ALIGNMENT = 8
"""Bytes of the length (little-endian) with which a file begins; its header in JSON and its arrays follow."""
FORMULA = "=+-@\t\r"
"""First characters of text that a spreadsheet runs as a formula."""
MINUS_NAME = re.compile(r"-[^\W\d][\w .-]*")
"""A name such as -L: a spreadsheet shows an error for it, but has nothing in it to run."""


@dataclass(frozen=True)
class ArrayFile:
    """Named arrays with their metadata."""

    arrays: dict[str, NDArray[Any]]
    metadata: dict[str, Any]

    @property
    def subjects(self) -> tuple[str, ...]:
        """The ids along the subject axis, for artefacts that have one."""
        return tuple(self.metadata["subjects"])


@contextmanager
def atomic(path: str | Path, size: int = 0) -> Iterator[Path]:
    """Yield a temporary path beside `path`, which replaces `path` on success and is deleted on failure.

    The bytes are on the disk before the name exists: not even a power cut leaves an empty file that looks whole. Parts
    of the same file that killed processes left are deleted.

    Args:
        path: of the file.
        size: of the file in bytes where it is known, for the error about a full disk.

    Raises:
        FullDiskError: there is no room.
    """
    target = Path(path)
    temporary = part_of(target)
    written = 0
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_left_over(target)
        try:
            yield temporary
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
        finally:
            written = temporary.stat().st_size if temporary.exists() else 0
        mask = os.umask(0o022)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        os.replace(temporary, target)
    except Exception as error:
        temporary.unlink(missing_ok=True)
        if is_full(error):
            raise full_disk(target, size, written) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: one value, one string."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def write_arrays(path: str | Path, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
    """Write named arrays with JSON-able metadata as one safetensors file, with the bytes of `safetensors.numpy.save`.

    Not by `save_file`: it writes a temporary file of its own, which stays for ever where the process is killed.
    """
    dense = {name: np.asarray(array, array.dtype.newbyteorder("<"), order="C") for name, array in arrays.items()}
    head, starts, size = _layout({name: (array.dtype, array.shape) for name, array in dense.items()}, metadata)
    with atomic(path, size) as temporary, temporary.open("wb") as file:
        file.write(head)
        for name in starts:
            file.write(dense[name].data)


def _layout(
    shapes: Mapping[str, tuple[DTypeLike, tuple[int, ...]]], metadata: Mapping[str, Any]
) -> tuple[bytes, dict[str, int], int]:
    """The head of a safetensors file, the first byte of each array in the order of the file, and the file's size."""
    order = sorted(shapes, key=lambda name: ([*KINDS].index(np.dtype(shapes[name][0]).name), name))
    header: dict[str, Any] = {"__metadata__": {METADATA_KEY: canonical_json(dict(metadata))}}
    starts: dict[str, int] = {}
    offset = 0
    for name in order:
        kind, shape = np.dtype(shapes[name][0]), shapes[name][1]
        starts[name], end = offset, offset + kind.itemsize * math.prod(shape)
        header[name] = {"dtype": KINDS[kind.name], "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    head = len(text).to_bytes(ALIGNMENT, "little") + text
    return head, {name: len(head) + start for name, start in starts.items()}, len(head) + offset


@contextmanager
def writing_blocks(
    path: str | Path, shapes: Mapping[str, tuple[DTypeLike, tuple[int, ...]]], metadata: Mapping[str, Any]
) -> Iterator[Append]:
    """Yield a function that appends a block of rows to one of the arrays, which need never be in memory as a whole.

    Args:
        path: of the file; its bytes are those of `write_arrays`.
        shapes: array -> type and shape.
        metadata: JSON-able metadata.

    Raises:
        ValueError: a block does not fit, or an array is not complete at the end.
        FullDiskError: there is no room.
    """
    head, starts, size = _layout(shapes, metadata)
    written = dict.fromkeys(starts, 0)
    with atomic(path, size) as temporary, temporary.open("wb") as file:
        file.write(head)

        def append(name: str, block: NDArray[Any]) -> None:
            kind, shape = np.dtype(shapes[name][0]), shapes[name][1]
            if block.dtype != kind or block.shape[1:] != shape[1:] or written[name] + len(block) > shape[0]:
                raise ValueError(
                    f"{name}: expected a block of {kind} {shape} after row {written[name]}, found {block.dtype} "
                    f"{block.shape}"
                )
            file.seek(starts[name] + written[name] * kind.itemsize * math.prod(shape[1:]))
            file.write(np.ascontiguousarray(block).data)
            written[name] += len(block)

        yield append
        lacking = [name for name in starts if written[name] < shapes[name][1][0]]
        if lacking:
            raise ValueError(f"{path}: the arrays {lacking} are not complete")


def read_arrays(path: str | Path, names: Sequence[str] | None = None) -> ArrayFile:
    """Read all arrays, or those in `names`; a missing or damaged file is a `UserError`."""
    with _opened(path) as file:
        keys = set(file.keys())
        wanted = sorted(keys) if names is None else list(names)
        absent = [name for name in wanted if name not in keys]
        if absent:
            raise UserError(
                f"{path}: expected the arrays {wanted}, {absent} are missing; delete the file and run again."
            )
        arrays = {name: file.get_tensor(name) for name in wanted}
        metadata = json.loads((file.metadata() or {}).get(METADATA_KEY, "{}"))
    return ArrayFile(arrays, metadata)


@contextmanager
def _opened(path: str | Path) -> Iterator[Any]:
    try:
        with safe_open(str(path), framework="numpy") as file:
            yield file
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path}: not a whole safetensors file ({error}); delete it and run again.") from error


def below(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def write_table(path: str | Path, frame: pd.DataFrame) -> None:
    """Write a table as parquet, without its index."""
    with atomic(path) as temporary:
        frame.to_parquet(temporary, index=False, compression="zstd")


def read_table(path: str | Path, columns: Sequence[str] = ()) -> pd.DataFrame:
    """Read a parquet table; a missing column is a `UserError`.

    It is read by this thread alone: where Arrow cannot start a thread of its own, it waits for it for ever.
    """
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            frame: pd.DataFrame = file.read(use_threads=False).to_pandas(use_threads=False)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: not a whole parquet file ({error}); delete it and run again.") from error
    absent = [name for name in columns if name not in frame.columns]
    if absent:
        raise UserError(f"{path}: expected the columns {list(columns)}, {absent} are missing; delete it and run again.")
    return frame


def read_tables(paths: Iterable[str | Path], columns: Sequence[str] = ()) -> pd.DataFrame:
    """Several parquet tables as one, below each other, with a new index."""
    return pd.concat([read_table(path, columns) for path in paths], ignore_index=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file as UTF-8."""
    content = text.encode()
    with atomic(path, len(content)) as temporary:
        temporary.write_bytes(content)


def write_json(path: str | Path, value: Any) -> None:
    """Write a value as one line of canonical JSON."""
    write_text(path, canonical_json(value) + "\n")


def read_json(path: str | Path) -> Any:
    """The value in a JSON file."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def write_tsv(path: str | Path, frame: pd.DataFrame, *, keep_names: bool = False, **layout: Any) -> None:
    """Write a table as tab-separated text, missing values empty.

    Args:
        path: of the file.
        frame: the table.
        keep_names: write text as it is, for files that programs read by name; else text that a spreadsheet would run
            as a formula gets an apostrophe in front.
        layout: further arguments of `DataFrame.to_csv`.
    """
    written = frame if keep_names else _without_formulas(frame)
    write_text(path, written.to_csv(sep="\t", index=False, lineterminator="\n", **layout))


def _without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    safe = frame.rename(columns=_without_formula)
    for at, kind in enumerate(safe.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            safe.isetitem(at, [_without_formula(cell) for cell in safe.iloc[:, at]])
    return safe


def _without_formula(cell: Any) -> Any:
    """A cell as it is; text that begins like a formula and is no number gets an apostrophe in front.

    A spreadsheet runs `=1+1`, `+x`, `@x` and `-cmd|...`, which a downloaded table of phenotypes may hold.
    """
    if not isinstance(cell, str) or len(cell) < 2 or cell[0] not in FORMULA or MINUS_NAME.fullmatch(cell):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


# Arrays of an artefact without a copy in memory: pages of the file are read when they are used.

DTYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64}


def map_array(path: Path | str, name: str) -> ArrayFile:
    """The array `name` of float32, float64 or int64, read-only, and the metadata.

    Raises:
        UserError: the file is missing, damaged or without that array.
    """
    metadata = read_arrays(path, []).metadata
    with Path(path).open("rb") as file:
        length = int.from_bytes(file.read(ALIGNMENT), "little")
        header = json.loads(file.read(length)).get(name)
    if header is None or header["dtype"] not in DTYPES or 0 in header["shape"]:
        return read_arrays(path, [name])
    offset = ALIGNMENT + length + header["data_offsets"][0]
    mapped = np.memmap(path, DTYPES[header["dtype"]], mode="r", offset=offset, shape=tuple(header["shape"]))
    return ArrayFile({name: np.asarray(mapped)}, metadata)


def array_shapes(path: Path | str) -> dict[str, tuple[int, ...]]:
    """Array -> its shape, by the header of the file alone.

    Raises:
        UserError: the file is missing or damaged.
    """
    with _opened(path) as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in sorted(file.keys())}


# Short names of array types for signatures.

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
FloatArray = Float32 | Float64
"""Of either precision."""
