"""The lock files of results: a run holds those of all that it may write."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

NAME = ".lock"


def lock_files(results: Path, cohorts: Iterable[str], project: str) -> list[Path]:
    """The locks of cohorts and of a project's report; their folders are made.

    A linked folder below a cohort, such as series that several projects share, has a lock of its own.
    """
    folders = [results / cohort for cohort in cohorts]
    found = [folder / NAME for folder in folders] + [results / "reports" / f".{project}{NAME}"]
    for lock in found:
        with suppress(OSError):
            lock.parent.mkdir(parents=True, exist_ok=True)
    return found + [link / NAME for folder in folders for link in _links(folder)]


def _links(folder: Path) -> list[Path]:
    with suppress(OSError), os.scandir(folder) as entries:
        return [Path(entry.path) for entry in entries if entry.is_symlink() and entry.is_dir()]
    return []
