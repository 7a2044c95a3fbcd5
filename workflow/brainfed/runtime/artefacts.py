"""Files between jobs: safetensors for arrays, parquet for tables, all written atomically.

Same content, same bytes: metadata is one canonical JSON string, tables carry no index.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from brainfed.runtime.disk import full_disk, is_full
from brainfed.runtime.errors import UserError
from brainfed.runtime.parts import part_of, remove_left_over

METADATA_KEY = "brainfed"
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
            _synchronise(temporary)
        finally:
            written = temporary.stat().st_size if temporary.exists() else 0
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, target)
    except Exception as error:
        temporary.unlink(missing_ok=True)
        if is_full(error):
            raise full_disk(target, size, written) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _synchronise(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces: one value, one string."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def write_arrays(path: str | Path, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
    """Write named arrays with JSON-able metadata as one safetensors file."""
    dense = {name: np.asarray(arrays[name], order="C") for name in sorted(arrays)}
    with atomic(path, sum(array.nbytes for array in dense.values())) as temporary:
        save_file(dense, str(temporary), metadata={METADATA_KEY: canonical_json(dict(metadata))})


def read_arrays(path: str | Path, names: Sequence[str] | None = None) -> ArrayFile:
    """Read all arrays, or those in `names`; a missing or damaged file is a `UserError`."""
    try:
        with safe_open(str(path), framework="numpy") as file:
            held = set(file.keys())
            wanted = sorted(held) if names is None else list(names)
            absent = [name for name in wanted if name not in held]
            if absent:
                raise UserError(
                    f"{path}: expected the arrays {wanted}, {absent} are missing; delete the file and run again."
                )
            arrays = {name: file.get_tensor(name) for name in wanted}
            metadata = json.loads((file.metadata() or {}).get(METADATA_KEY, "{}"))
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path}: not a whole safetensors file ({error}); delete it and run again.") from error
    return ArrayFile(arrays, metadata)


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


def write_text(path: str | Path, text: str) -> None:
    """Write a text file as UTF-8."""
    content = text.encode()
    with atomic(path, len(content)) as temporary:
        temporary.write_bytes(content)


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
