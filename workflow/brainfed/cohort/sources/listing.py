"""List the subjects of a cohort and the paths of their series before any job runs (no checkpoint needed).

The module needs csv only, as the Snakefile imports it in every job. It lists images and series by path patterns; BIDS
derivatives, FreeSurfer's measures and simulations have modules of their own.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from brainfed.cohort.phenotype.participant import ONE_SITE, read_participant
from brainfed.cohort.phenotype.table import Row, cohort_rows
from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.sources.below import ANYWHERE, files_below, located
from brainfed.cohort.sources.bids.listing import list_bids
from brainfed.cohort.sources.freesurfer.further import unusable_measures
from brainfed.cohort.sources.freesurfer.listing import list_freesurfer
from brainfed.cohort.sources.known_atlases import atlas_files
from brainfed.cohort.sources.listed import EXCLUDED, Absence, ListedSubject, Listing, all_excluded, shard_name
from brainfed.cohort.sources.missing_inputs import missing_inputs
from brainfed.cohort.sources.path_patterns import filled_on_disk, lying_near, none_but, remedy_for
from brainfed.cohort.sources.simulated.listing import list_simulated
from brainfed.cohort.sources.tudataset.listing import list_graphs
from brainfed.cohort.sources.unlisted import unlisted_files
from brainfed.cohort.sources.usable_paths import unusable_paths
from brainfed.runtime.errors import UserError, pass_over


def list_cohort(name: str, settings: CohortSettings, root: str = "results", cohorts: Collection[str] = ()) -> Listing:
    """List cohort `name`; results lie under `root`, those of all `cohorts` of a run among them.

    Raises:
        UserError: a setting that the source needs is empty, the phenotype table is absent or broken, no series
            exists, several files fit the series of a subject, a series or confound file is absent and `on_invalid`
            is `error`, or Snakemake cannot take the path of a file, or the run writes where it lies.
    """
    listing = _listing(name, settings, root)
    tables = (listing.phenotype,) if isinstance(listing.phenotype, str) else listing.phenotype
    for mistake in (
        *unusable_paths(name, tables, settings, listing.subjects, cohorts),
        *unusable_measures(name, listing.subjects, settings),
    ):
        raise mistake
    return listing


def _listing(name: str, settings: CohortSettings, root: str) -> Listing:
    if settings.source == "simulate":
        return list_simulated(name, settings, f"{root}/{name}/simulated")
    if settings.source == "bids":
        return list_bids(name, settings)
    if settings.source == "freesurfer":
        return list_freesurfer(name, settings)
    if settings.source == "tudataset":
        return list_graphs(name, settings)
    for mistake in missing_inputs(name, settings):
        raise mistake
    rows = cohort_rows(settings.tables, settings)
    below = files_below(str(settings.series))
    subjects = tuple(list_subject(name, row, settings, below) for row in rows)
    unlisted = unlisted_files(str(settings.series), named_series(name, subjects, settings, below), below)
    for mistake in absent_files(name, subjects, settings, unlisted):
        raise mistake
    files = atlas_files(settings)
    tables = settings.tables if len(settings.tables) > 1 else settings.tables[0]
    return Listing(name, settings.atlas, tables, files.parcellation, files.labels, subjects, unlisted)


def named_series(
    name: str, subjects: Sequence[ListedSubject], settings: CohortSettings, below: Mapping[str, Sequence[str]]
) -> list[str]:
    """Series of all rows of the tables, including rows that `rows` ignores."""
    named = [listed.series for listed in subjects if listed.series]
    if not settings.rows:
        return named
    all_rows = cohort_rows(settings.tables, replace(settings, rows={}), pass_over)
    return [*named, *(path for row in all_rows if (path := _series(name, row, settings, below)))]


def _series(name: str, row: Row, settings: CohortSettings, below: Mapping[str, Sequence[str]]) -> str | None:
    """Filled pattern of a row's series; None if the row names no file."""

    def found(path: str) -> bool:
        return os.path.lexists(path) or path.partition(ANYWHERE)[2] in below

    columns = settings.columns
    file = row.file_id if columns.file is None else row.cells[columns.file]
    site = ONE_SITE if columns.site is None else row.cells[columns.site] or ""
    parts: dict[str, str | None] = {
        "file": file,
        "subject": row.file_id,
        "site": settings.codes.site.get(site, site),
    }
    return None if file is None else filled_on_disk(name, "series", str(settings.series), parts, found)


def list_subject(name: str, row: Row, settings: CohortSettings, below: Mapping[str, Sequence[str]]) -> ListedSubject:
    """One row of the table with the files that its patterns name.

    Args:
        name: of the cohort.
        row: of its table.
        settings: of the cohort.
        below: files of a pattern with `**`, as `files_below` returns them.

    Raises:
        UserError: a cell of the row is invalid, a pattern has wrong braces, or several files fit.
    """
    columns = settings.columns
    participant = read_participant(row.table, row, columns, settings.codes, settings.target, settings.classes)
    site = participant.site
    file = row.file_id if columns.file is None else row.cells[columns.file]
    parts = {"file": file, "subject": row.file_id, "site": site}
    series = _series(name, row, settings, below)
    if series is not None and not participant.excluded:
        series = located(name, series, below)
    confounds = None
    if file is not None and settings.confounds is not None:
        confounds = filled_on_disk(name, "confounds", settings.confounds, parts, os.path.lexists)
    shard = shard_name(row.subject, settings.shards)
    labelled = participant.diagnosis is not None
    absence = EXCLUDED if participant.excluded else _absence(series, confounds)
    return ListedSubject(
        row.subject, site, series, confounds, absence, shard, labelled, (), file, participant, row.file_id
    )


def _absence(series: str | None, confounds: str | None) -> Absence:
    if series is None:
        return "no series"
    if not Path(series).is_file():
        return "series file absent"
    if confounds is not None and not Path(confounds).is_file():
        return "confounds file absent"
    return ""


def absent_files(
    name: str, subjects: Sequence[ListedSubject], settings: CohortSettings, unlisted: Sequence[str] = ()
) -> Iterator[UserError]:
    """Refuse a cohort without any file, and absent files unless their subjects are to be dropped."""
    where = f"Cohort {name!r}"
    wanted = [listed for listed in subjects if listed.absence != EXCLUDED]
    if not wanted:
        yield all_excluded(name, len(subjects))
        return
    named = [listed for listed in wanted if listed.series is not None]
    without_series = [listed for listed in named if listed.absence == "series file absent"]
    if len(without_series) == len(named):
        hint = _other_names(wanted, unlisted) or (lying_near(str(named[0].series)) if named else "")
        yield UserError(
            f"{where}: expected the series of {len(wanted)} subjects at {settings.series}, found none; "
            f"{remedy_for(settings, 'series', settings.series)}{hint}."
        )
        return
    without_confounds = [listed for listed in named if listed.absence == "confounds file absent"]
    if len(without_series) + len(without_confounds) == len(named):
        yield UserError(f"{where}: expected confound tables at {settings.confounds}, found none; fix `confounds`.")
        return
    for key, absent in (("series", without_series), ("confounds", without_confounds)):
        if absent and settings.on_invalid == "error":
            first = absent[0]
            file = str(getattr(first, key))
            yield UserError(
                f"{where}: expected the {key} file {file} of subject {first.subject}, found {none_but(file)} "
                f"({len(absent)} of {len(named)} are absent); {remedy_for(settings, key)}, or set on_invalid: drop to "
                "leave such subjects out."
            )


def _other_names(subjects: Sequence[ListedSubject], unlisted: Sequence[str]) -> str:
    """Hint at other files in the folder of the series: often a spreadsheet took ids for numbers."""
    if not unlisted:
        return ""
    padded = [listed.subject for listed in subjects if any(f"0{listed.subject}" in file for file in unlisted)]
    hint = ", whose ids have leading zeros: write {subject:0>7} for seven digits" if padded else ""
    return f" ({len(unlisted)} files that no row names lie there, the first is {unlisted[0]}{hint})"
