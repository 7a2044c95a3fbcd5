"""The state after the last finished round, with which a killed job resumes, and how a method's job runs.

The file lies beside the job's output, hidden and undeclared: Snakemake neither waits for it nor deletes it. Its name
holds the digest of everything that the state depends on (settings, code, inputs): no other job resumes from it.
"""

import hashlib
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from numpy.typing import NDArray

from brainfed.runtime import (
    PROGRESS,
    FullDiskError,
    UserError,
    being_written,
    canonical_json,
    file_digest,
    read_arrays,
    write_arrays,
)

SUFFIX = ".checkpoint"
FIELDS = {"key", "round", "seconds", "metadata"}

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Checkpoint:
    """A place for one state.

    Attributes:
        path: the file, as `checkpoint_path` names it; None keeps nothing.
        key: identifies the job of the state; a file with another key is not loaded.
        job: its name in messages.
        seconds: time that the job has taken so far, in all its processes.
        is_current: whether the job still runs the code that the key stands for; a module may be imported late.
    """

    path: Path | None
    key: str
    job: str = ""
    seconds: Callable[[], float] = lambda: 0.0
    is_current: Callable[[], bool] = lambda: True

    def part(self, name: str) -> "Checkpoint":
        """The checkpoint of one part of the same job; parts do not displace each other."""
        if self.path is None:
            return self
        head = self.path.name.removesuffix(SUFFIX)
        return replace(self, path=self.path.with_name(f"{head}-{name}{SUFFIX}"), key=f"{self.key}/{name}")

    def save(self, round: int, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, Any]) -> None:
        """Keep the state after `round` in place of any earlier one, atomically.

        States of the same output with another digest can never be resumed again and are deleted. On a full disk the
        earlier state stays and the job goes on: its outputs may be smaller, or find room later.
        """
        if self.path is None or not self.is_current():
            return
        try:
            header = {"key": self.key, "round": round, "seconds": self.seconds(), "metadata": dict(metadata)}
            write_arrays(self.path, arrays, header)
        except FullDiskError as error:
            logger.warning("the state after round %d is not kept: %s", round + 1, error)
            return
        for other in _of_same_output(self.path):
            if _parse(other.name) != _parse(self.path.name):
                other.unlink(missing_ok=True)

    def load(self, unit: str = "round", of: int = 0) -> tuple[int, dict[str, NDArray[Any]], dict[str, Any]] | None:
        """The kept (round, arrays, metadata), or None where nothing whole is kept under this key.

        `round` is the last one finished, from 0. A line at the terminal names it.

        Args:
            unit: name of a round of this job.
            of: number of rounds where it is known; a state after the last round is loaded without that line.
        """
        if self.path is None or not self.path.exists():
            return None
        try:
            kept = read_arrays(self.path)
        except UserError as error:
            logger.warning("the checkpoint is ignored, starting anew: %s", error)
            return None
        if kept.metadata.keys() != FIELDS or kept.metadata["key"] != self.key:
            logger.warning("the checkpoint %s belongs to other settings and is ignored, starting anew", self.path)
            return None
        finished = int(kept.metadata["round"])
        if finished + 1 != of:
            last = f"{unit} {finished + 1} of {of}" if of else f"{unit} {finished + 1}"
            after = f"goes on after {last}, which an earlier run kept"
            logging.getLogger(PROGRESS).info(f"{self.job}: {after}" if self.job else after)
        return finished, kept.arrays, kept.metadata["metadata"]

    def spent(self) -> float:
        """Seconds that earlier processes took for the states kept here, parts included; 0 without any."""
        if self.path is None:
            return 0.0
        seconds = [0.0]
        for path in _of_same_output(self.path):
            if _parse(path.name) == _parse(self.path.name) and path.name.endswith(SUFFIX):
                # `load` warns of a damaged file and ignores it.
                with suppress(UserError):
                    seconds.append(float(read_arrays(path, ()).metadata.get("seconds", 0)))
        return max(seconds)

    def remove(self) -> None:
        """Delete the state and all its parts: the job has written its outputs."""
        if self.path is not None:
            for path in _of_same_output(self.path):
                path.unlink(missing_ok=True)


def checkpoint_path(output: Path | str, digest: str) -> Path:
    """The hidden file beside `output` that holds the state of the job that `digest` describes."""
    target = Path(output)
    return target.with_name(f".{target.name}.{digest}{SUFFIX}")


def inputs_digest(params: Mapping[str, Any], files: Iterable[Path | str]) -> str:
    """Digest of parameters and inputs of a job, as 16 hexadecimal characters.

    Args:
        params: the rule's parameters, its code digest among them; JSON-able.
        files: the rule's input files, in the rule's order; their contents count, their names do not.
    """
    described = canonical_json({"params": dict(params), "files": [file_digest(path) for path in files]})
    return hashlib.sha256(described.encode()).hexdigest()[:16]


def _of_same_output(path: Path) -> set[Path]:
    """The checkpoints of the same output beside `path`, and half-written ones of killed jobs."""
    output, _ = _parse(path.name)
    files = path.parent.glob(f"*{SUFFIX}*") if output else ()
    return {file for file in files if _parse(file.name)[0] == output and not being_written(file)}


def _parse(name: str) -> tuple[str, str]:
    """The output and the digest in a checkpoint's name, whole (`.NAME.DIGEST-PART.checkpoint`) or half-written."""
    match = re.fullmatch(rf"\.?\.(.+)\.([^.-]+)(?:-[^.]+)?{re.escape(SUFFIX)}(?:\..+\.part)?", name)
    return (match[1], match[2]) if match else ("", "")


# How a method job runs: device, precision, checkpoint, progress.


class Reports(Protocol):
    """Callback for finished units of work."""

    def __call__(self, done: int, total: int, what: str, *, at_most: bool = False) -> None:
        """Note that `done` of `total` units are finished, or of at most so many."""


def _log(done: int, total: int, what: str, *, at_most: bool = False) -> None:
    logger.info("%s %d/%s%d", what, done, "at most " if at_most else "", total)


@dataclass(frozen=True)
class Run:
    """Settings of the machine, never of the science.

    Attributes:
        device: a torch device name.
        precision: `float64` is for the equivalence tests.
        checkpoint: holds the state after the last finished round; without a path it keeps nothing.
        progress: called after each unit of work.
        keeps_models: whether the method returns the model of every fold.
    """

    device: str = "cpu"
    precision: Literal["float32", "float64"] = "float32"
    checkpoint: Checkpoint = Checkpoint(None, "")
    progress: Reports = _log
    keeps_models: bool = False
