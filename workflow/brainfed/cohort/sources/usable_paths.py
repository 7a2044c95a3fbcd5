"""Refuse paths that Snakemake misreads, as braces are its wildcards and angle brackets its path variables.

And inputs in the folder that the run writes, where a job may replace them and `make prune` delete them.
"""

import os
from collections.abc import Iterator, Sequence

from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.sources.freesurfer.files import stats_folder
from brainfed.cohort.sources.known_atlases import atlas_files
from brainfed.cohort.sources.listed import ListedSubject
from brainfed.runtime.errors import UserError

RESERVED = frozenset("{}<>")


def unusable_paths(
    name: str, tables: Sequence[str], settings: CohortSettings, subjects: Sequence[ListedSubject]
) -> Iterator[UserError]:
    """Mistakes of files that no rule can name: each file of the cohort, and the first of its subjects.

    Args:
        name: name of the cohort.
        tables: paths of its phenotype tables.
        settings: settings of the cohort.
        subjects: listed subjects; files of those without a series are ignored.
    """
    if settings.source == "simulate":
        return
    where = f"Cohort {name!r}"
    for path in (*tables, *atlas_files(settings), *settings.freesurfer.tables):
        if path is not None and (wrong := _wrong(name, path)):
            yield UserError(f"{where}: {wrong}.")
    files = ((one, path) for one in subjects if one.has_series for path in _files(one, settings))
    found = [(one, wrong) for one, path in files if (wrong := _wrong(name, path))]
    if found:
        subject, wrong = found[0]
        count = len({one.subject for one, _ in found})
        yield UserError(f"{where}, subject {subject.subject}: {wrong} ({count} such subjects).")


def _wrong(name: str, path: str) -> str:
    """Expected against found, and what to do; empty for a path that can be used."""
    if RESERVED & set(path):
        return f"expected a path without braces and angle brackets, found {path}; rename the file or folder"
    written = os.path.join("results", name)  # noqa: PTH118, as paths are asked for every file of every subject
    if os.path.abspath(path).startswith(os.path.abspath(written) + os.sep):  # noqa: PTH100
        return f"expected a file outside {written}, which the run writes, found {path}; move it, for example to data"
    return ""


def _files(listed: ListedSubject, settings: CohortSettings) -> list[str]:
    """Files of a subject that rules read."""
    if settings.source == "freesurfer":
        folder = settings.freesurfer.subjects_dir
        return [] if folder is None else [str(stats_folder(settings.freesurfer, str(listed.series)))]
    runs = [path for run in listed.runs for path in (run.image, run.confounds, run.mask, run.components, *run.sidecars)]
    return [path for path in (listed.series, listed.confounds, *runs) if path is not None]
