"""The record of how a result was made, written beside it by its job.

One record a job, hidden beside its first output (`.predictions.parquet.made`): digests of the job's parameters, its
inputs and outputs with a digest of every content, and the versions of the libraries that computed it. Snakemake keeps
such records in `.snakemake` alone; this one travels with the results.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from brainfed.runtime import UserError, write_whole
from brainfed.runtime.records._contents import UNKNOWN, Content, as_list, content, from_list, signature

SUFFIX = ".made"
DIGEST_LENGTH = 16

Roles = tuple[tuple[str, tuple[str, ...]], ...]
"""Name of an input -> its paths, in the rule's order: two inputs that trade places are other inputs."""


@dataclass(frozen=True)
class Made:
    """How the outputs of one job were made.

    Attributes:
        parts: parameter -> digest of its value; `code` is one of them.
        inputs: the paths read, by role.
        contents: input path -> its content.
        outputs: output path -> its content.
        versions: package -> the version that computed the outputs; empty where unknown.
        adopted: whether a user had the outputs taken for those of these parameters and inputs.
    """

    parts: Mapping[str, str]
    inputs: Roles
    contents: Mapping[str, Content]
    outputs: Mapping[str, Content]
    versions: Mapping[str, str]
    adopted: bool = False


def record_path(output: str | Path) -> Path:
    """The hidden record beside a job's first output."""
    path = Path(output)
    return path.with_name(f".{path.name}{SUFFIX}")


def parts_of(given: Mapping[str, Any]) -> dict[str, str]:
    """Parameter -> digest of its value. The order of keys in a mapping counts, as it may for the job."""
    return {name: _digest(value) for name, value in given.items()}


def roles_of(inputs: Any) -> Roles:
    """The named inputs of a job, as Snakemake gives them to rules and scripts."""
    return tuple(
        (str(name), (str(value),) if isinstance(value, str | Path) else tuple(map(str, value)))
        for name, value in inputs.items()
    )


class Making:
    """Watches the inputs of a job from its start to its end.

    The inputs are read here once, before the job computes anything.

    Args:
        given: the job's parameters by name.
        inputs: the paths that it reads, by role.
        outputs: the paths that it writes; the first names the record, and without any none is kept.

    Raises:
        UserError: an input is no longer what its own job wrote.
    """

    def __init__(self, given: Mapping[str, Any], inputs: Roles, outputs: Sequence[str]) -> None:
        self._made = Made(parts_of(given), inputs, {}, {}, {})
        self._outputs = list(outputs)
        self._before = dict[str, Content]()
        if not self._outputs:
            return
        # The old record describes outputs that are about to be written anew.
        record_path(self._outputs[0]).unlink(missing_ok=True)
        for path in dict.fromkeys(path for _, paths in inputs for path in paths):
            self._before[path] = before = _readable(path)
            _require_as_written(path, before)

    def finish(self, versions: Mapping[str, str], edited: str = "") -> None:
        """Write the record. An input that another file replaced has no digest there, so that the next start sees it.

        Args:
            versions: of the libraries.
            edited: a digest of the code that has run, where it is not that of the parameters.

        Raises:
            UserError: an input changed during the job.
        """
        if not self._outputs:
            return
        contents = {path: _unless_changed(path, before) for path, before in self._before.items()}
        made = replace(self._made, contents=contents, outputs=contents_of(self._outputs), versions=dict(versions))
        write(replace(made, parts={**made.parts, **parts_of({"code": edited})}) if edited else made)


def contents_of(paths: Iterable[str]) -> dict[str, Content]:
    """Path -> content, of those that exist."""
    return {path: current for path in paths if (current := content(path)) is not None}


def write(made: Made) -> None:
    """Write a record beside the first of its outputs, whole or not at all."""
    path = record_path(next(iter(made.outputs)))
    record = {
        "parts": dict(made.parts),
        "inputs": [[name, list(paths)] for name, paths in made.inputs],
        "contents": {name: as_list(known) for name, known in made.contents.items()},
        "outputs": {name: as_list(known) for name, known in made.outputs.items()},
        "versions": dict(made.versions),
        "adopted": made.adopted,
    }
    write_whole(path, json.dumps(record) + "\n")


def read(output: str | Path) -> Made | None:
    """The record beside a job's first output; None where there is no whole one."""
    try:
        record = json.loads(record_path(output).read_text(encoding="utf-8"))
        return Made(
            record["parts"],
            tuple((name, tuple(paths)) for name, paths in record["inputs"]),
            {name: from_list(values) for name, values in record["contents"].items()},
            {name: from_list(values) for name, values in record["outputs"].items()},
            record["versions"],
            bool(record["adopted"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def record_of(output: str | Path) -> Made | None:
    """The record of the job that wrote a file, as its first output or another; None where there is none."""
    path = Path(output)
    own = read(path)
    if own is not None:
        return own
    if not path.parent.is_dir():
        return None
    beside = _records_in(path.parent, path.parent.stat().st_mtime_ns)
    return next((made for made in beside if str(path) in made.outputs), None)


@cache
def _records_in(folder: Path, changed: int) -> tuple[Made, ...]:  # noqa: ARG001, of a folder as it is since then
    """The records in a folder that got or lost its last file at this time."""
    named = (path.name.removeprefix(".").removesuffix(SUFFIX) for path in sorted(folder.glob(f".*{SUFFIX}")))
    records = (read(folder / name) for name in named)
    return tuple(made for made in records if made is not None)


def _readable(path: str) -> Content:
    """The content of an input, `UNKNOWN` if it cannot be read: the job reports that when it reads it."""
    try:
        return content(path) or UNKNOWN
    except OSError:
        return UNKNOWN


def _unless_changed(path: str, before: Content) -> Content:
    """The content of an input after the job; a chmod or a hard link meanwhile (a backup) is no change.

    Raises:
        UserError: it changed since.
    """
    now = signature(path)
    if now is None or before == UNKNOWN:
        return UNKNOWN
    current = before if now == before.signature else _readable(path)
    # Some network disks number their files anew.
    if now[:2] == before.signature[:2] and (current.digest == before.digest or now[3] != before.signature[3]):
        return current if now[3] == before.signature[3] else UNKNOWN
    raise UserError(
        f"{path}: expected a file that does not change while a job reads it, found one of another time, size or "
        "content; wait until it is complete, and run again."
    )


def _require_as_written(path: str, current: Content) -> None:
    """Refuse an input whose content is no longer what its own job wrote; that job then runs again."""
    made = record_of(path)
    written = made.outputs.get(path) if made else None
    if made is None or written is None or written.digest in ("", current.digest) or current == UNKNOWN:
        return
    if (written.signature[0], written.signature[3]) == (current.signature[0], current.signature[3]):
        write(replace(made, outputs={**made.outputs, path: UNKNOWN}))
        raise UserError(
            f"{path}: expected the content that its job wrote, found another: the file was edited, or damaged on the "
            "disk; run again, which computes it anew."
        )


def _digest(value: Any) -> str:
    described = json.dumps(value, separators=(",", ":"), default=repr)
    return hashlib.sha256(described.encode()).hexdigest()[:DIGEST_LENGTH]
