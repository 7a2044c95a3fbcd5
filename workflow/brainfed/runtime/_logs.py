"""Logging of a job: all messages go to the rule's log; progress, warnings and errors go to stderr too."""

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
    """A log file that ends where its disk is full: the job may still succeed, and its errors reach stderr too."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Report a record that could not be written, unless the disk refused it."""
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
    # Python's warnings come from libraries: they belong in the file.
    logging.captureWarnings(True)


def _for_a_person(record: logging.LogRecord) -> bool:
    if record.name == "py.warnings":
        return False
    return record.levelno >= logging.WARNING or record.name == PROGRESS


@dataclass
class Progress:
    """Lines like `fedni, repeat 0: round 12 of 100, loss 0.1230, about 4 min left`.

    Called with (done, total, what) after each unit of work; `what` is values to report and the unit: `loss 0.1230,
    round`. A line goes to the log and to the terminal every `every` seconds. The last line goes to the log, and to the
    terminal only after others, so that short jobs do not fill the screen. The rate counts the units of this process
    alone: those of a resumed checkpoint took it no time. Where a solver ends by itself, the line is `round 12 of at
    most 100`: how many are left is not known.

    Attributes:
        name: of the job.
        every: seconds between two lines.
        clock: seconds.
    """

    name: str = ""
    every: float = 10.0
    clock: Callable[[], float] = time.monotonic
    _first: tuple[int, float] = field(default=(0, 0.0), init=False)
    _last: tuple[int, int] = field(default=(0, 0), init=False)
    _reported: float = field(init=False)
    _shown: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._reported = self.clock()

    def __call__(self, done: int, total: int, what: str, *, at_most: bool = False) -> None:
        """Note that `done` of `total` units are finished, or of at most so many."""
        now = self.clock()
        if not at_most:
            if total != self._last[1] or done <= self._last[0]:
                self._first = done, now
            self._last = done, total
        due = now - self._reported >= self.every
        if not due and (at_most or done < total):
            return
        values, _, unit = what.rpartition(", ")
        parts = [f"{unit} {done} of {'at most ' if at_most else ''}{total}", values, "" if at_most else self._left(now)]
        line = ", ".join(part for part in parts if part)
        if due:
            self._reported, self._shown = now, True
        logger = logging.getLogger(PROGRESS if self._shown else __name__)
        logger.info(f"{self.name}: {line}" if self.name else line)

    def report(self, sentence: str) -> None:
        """Write a sentence to the terminal and to the log."""
        logging.getLogger(PROGRESS).info(sentence)

    def _left(self, now: float) -> str:
        (done, total), (first, start) = self._last, self._first
        if not first < done < total:
            return ""
        return f"about {_duration((now - start) / (done - first) * (total - done))} left"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
