"""Where a job writes what it does: everything into its rule's log, the little that a person needs to stderr."""

import logging
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

FILE_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
PROGRESS = "brainfed.progress"


class TerseFormatter(logging.Formatter):
    """One line a message, without tracebacks: they are in the log file."""

    def format(self, record: logging.LogRecord) -> str:
        """The message on one line."""
        return " ".join(record.getMessage().split())


class LogFile(logging.FileHandler):
    """A log that falls silent where its disk is full: the job may still end well, and its errors reach stderr too."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Tell of a record that could not be written, unless the disk refused it."""
        if not isinstance(sys.exception(), OSError):
            super().handleError(record)


def configure(log_path: Path | str | None) -> None:
    """Send all messages to the file, and progress, warnings of ours and errors to stderr as well.

    Args:
        log_path: the rule's log, written anew; None sends everything to stderr.
    """
    console = logging.StreamHandler(sys.stderr)
    handlers: list[logging.Handler] = [console]
    if log_path is not None:
        Path(log_path).parent.mkdir(parents=True, exist_ok=True)
        handlers.append(LogFile(log_path, mode="w", encoding="utf-8"))
        console.addFilter(_for_a_person)
    logging.basicConfig(level=logging.INFO, format=FILE_FORMAT, handlers=handlers, force=True)
    if log_path is not None:
        console.setFormatter(TerseFormatter())
    # Python's warnings come from libraries: they belong into the file.
    logging.captureWarnings(True)


def _for_a_person(record: logging.LogRecord) -> bool:
    if record.name == "py.warnings":
        return False
    return record.levelno >= logging.WARNING or record.name == PROGRESS


@dataclass
class Progress:
    """Lines like `fedgcn: 12 of 100, about 4 min left`, at most one each `every` seconds, and the last.

    Called with (done, total, what) after each unit of work. The rate is taken from the units that this
    process did: those of a resumed checkpoint took it no time.
    """

    every: float = 10.0
    clock: Callable[[], float] = time.monotonic
    _begun: dict[str, tuple[float, int]] = field(default_factory=dict, init=False)
    _spoken: float | None = field(default=None, init=False)

    def __call__(self, done: int, total: int, what: str) -> None:
        """Note that `done` of `total` units of `what` are finished."""
        now = self.clock()
        start, first = self._begun.setdefault(what, (now, done))
        if self._spoken is not None and now - self._spoken < self.every and done < total:
            return
        self._spoken = now
        line = f"{what}: {done} of {total}"
        if first < done < total:
            line += f", about {_duration((now - start) / (done - first) * (total - done))} left"
        logging.getLogger(PROGRESS).info(line)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
