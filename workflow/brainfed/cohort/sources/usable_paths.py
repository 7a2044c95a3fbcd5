"""Refuse paths that Snakemake misreads, as braces are its wildcards and angle brackets its path variables.

And inputs in the folder that the run writes, where a job may replace them and `make prune` delete them.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.sources.freesurfer.files import stats_folder
from brainfed.cohort.sources.known_atlases import atlas_files
from brainfed.cohort.sources.listed import ListedSubject
from brainfed.runtime.errors import UserError

RESERVED = frozenset("{}<>")


def unusable_paths(
    name: str,
    tables: Sequence[str],
    settings: CohortSettings,
    subjects: Sequence[ListedSubject],
    cohorts: Collection[str] = (),
) -> Iterator[UserError]:
    """Mistakes of files that no rule can name: each file of the cohort, and the first of its subjects.

    Args:
        name: name of the cohort.
        tables: paths of its phenotype tables.
        settings: settings of the cohort.
        subjects: listed subjects; files of those without a series are ignored.
        cohorts: all that the run makes; results of another run are inputs like others.
    """
    if settings.source == "simulate":
        return
    where, written = f"Cohort {name!r}", _Written(name, cohorts)
    of_all = (*tables, *atlas_files(settings), *settings.freesurfer.tables, settings.freesurfer.subjects_dir)
    for path in of_all:
        if path is not None and (wrong := written.wrong(path)):
            yield UserError(f"{where}: {wrong}.")
    files = ((one, path) for one in subjects if one.has_series for path in _files(one, settings))
    found = [(one, wrong) for one, path in files if (wrong := written.wrong(path))]
    if found:
        subject, wrong = found[0]
        count = len({one.subject for one, _ in found})
        yield UserError(f"{where}, subject {subject.subject}: {wrong} ({count} such subjects).")


class _Written:
    """The folders that a run writes, as they are named and where links lead.

    Args:
        name: the cohort whose files are asked for.
        cohorts: all of the run.
    """

    def __init__(self, name: str, cohorts: Collection[str]) -> None:
        self._name = name
        self._folders = [
            (cohort, place) for cohort in dict.fromkeys((name, *cohorts)) for place in _places(Path("results", cohort))
        ]
        self._folder_of = dict[Path, str]()

    def wrong(self, path: str) -> str:
        """Expected against found, and what to do; empty for a path that can be used."""
        if RESERVED & set(path):
            return f"expected a path without braces and angle brackets, found {path}; rename the file or folder"
        held = Path(path)
        # Many files lie in one folder, whose links are followed once.
        cohort = self._cohort(held if held.is_symlink() or held.is_dir() else held.parent)
        if not cohort:
            return ""
        other = "" if cohort == self._name else f", or make cohort {cohort!r} by a config of its own"
        return (
            f"expected a file outside results/{cohort}, which the run writes, found {path}; move it, for example to "
            f"data{other}"
        )

    def _cohort(self, path: Path) -> str:
        """The cohort whose results a path lies in; empty: none."""
        if path not in self._folder_of:
            places = _places(path)
            lying = (cohort for cohort, folder in self._folders if any(one.is_relative_to(folder) for one in places))
            self._folder_of[path] = next(lying, "")
        return self._folder_of[path]


def _places(path: Path) -> set[Path]:
    return {Path(os.path.normpath(path.absolute())), path.resolve()}


def _files(listed: ListedSubject, settings: CohortSettings) -> list[str]:
    """Files of a subject that rules read."""
    if settings.source == "freesurfer":
        folder = settings.freesurfer.subjects_dir
        return [] if folder is None else [str(stats_folder(settings.freesurfer, str(listed.series)))]
    runs = [path for run in listed.runs for path in (run.image, run.confounds, run.mask, run.components, *run.sidecars)]
    return [path for path in (listed.series, listed.confounds, *runs) if path is not None]
