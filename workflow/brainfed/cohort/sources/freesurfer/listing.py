"""List a cohort of FreeSurfer measures: rows of the phenotype table and existing stats files."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from brainfed.cohort.phenotype.participant import read_participant
from brainfed.cohort.phenotype.table import Row, cohort_rows
from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.sources.freesurfer.files import has_stats, missing_measures, stats_folder
from brainfed.cohort.sources.listed import EXCLUDED, Absence, ListedSubject, Listing, all_excluded, shard_name
from brainfed.cohort.sources.path_patterns import filled_on_disk, lying_near, remedy_for
from brainfed.runtime.errors import UserError


def list_freesurfer(name: str, settings: CohortSettings) -> Listing:
    """List cohort `name` with source freesurfer.

    Raises:
        UserError: a setting is empty, a file is absent, the phenotype table is broken, or a subject's stats files are
            absent and `on_invalid` is `error`.
    """
    for mistake in _unmet(name, settings):
        raise mistake
    rows = cohort_rows(settings.tables, settings)
    subjects = tuple(_listed(name, row, settings) for row in rows)
    for mistake in _absent(name, subjects, settings):
        raise mistake
    tables = settings.tables if len(settings.tables) > 1 else settings.tables[0]
    return Listing(name, settings.atlas, tables, None, None, subjects)


def _unmet(name: str, settings: CohortSettings) -> Iterator[UserError]:
    where = f"Cohort {name!r}"
    for table in settings.tables or ("(not set)",):
        if not Path(table).is_file():
            yield UserError(
                f"{where}: expected the phenotype file {table}, found none; "
                f"{remedy_for(settings, 'phenotype', table)}{lying_near(table)}."
            )
    yield from missing_measures(where, settings.freesurfer, remedy_for(settings, "freesurfer"))
    if settings.confounds is not None:
        yield UserError(
            f"{where}: confounds are regressed out of NIfTI images only, found source {settings.source!r}; remove "
            "`confounds`."
        )


def _listed(name: str, row: Row, settings: CohortSettings) -> ListedSubject:
    columns = settings.columns
    participant = read_participant(row.table, row, columns, settings.codes, settings.target, settings.classes)
    file = row.file_id if columns.file is None else row.cells[columns.file]
    parts = {"file": file, "subject": row.file_id, "site": participant.site}
    identity = None
    if file is not None:
        has = partial(has_stats, settings.freesurfer)
        identity = filled_on_disk(name, "freesurfer.id", settings.freesurfer.id, parts, has)
    absence = EXCLUDED if participant.excluded else _absence(identity, settings)
    labelled = participant.diagnosis is not None
    shard = shard_name(row.subject, settings.shards)
    return ListedSubject(row.subject, participant.site, identity, None, absence, shard, labelled, person=participant)


def _absence(identity: str | None, settings: CohortSettings) -> Absence:
    """Reason for absent stats files; rows of tables are checked when these are read."""
    if identity is None:
        return "no FreeSurfer id"
    source = settings.freesurfer
    return "" if source.subjects_dir is None or has_stats(source, identity) else "stats folder absent"


def _absent(name: str, subjects: Sequence[ListedSubject], settings: CohortSettings) -> Iterator[UserError]:
    where = f"Cohort {name!r}"
    wanted = [listed for listed in subjects if listed.absence != EXCLUDED]
    if not wanted:
        yield all_excluded(name, len(subjects))
        return
    named = [listed for listed in wanted if listed.series is not None]
    if not named:
        yield UserError(f"{where}: expected a subject with a FreeSurfer id, found none; fix `columns.file`.")
    absent = [listed for listed in named if listed.absence]
    if absent and (settings.on_invalid == "error" or len(absent) == len(named)):
        way_out = "" if len(absent) == len(named) else ", or set on_invalid: drop to leave such subjects out"
        yield UserError(
            f"{where}: expected the folder {stats_folder(settings.freesurfer, str(absent[0].series))} of subject "
            f"{absent[0].subject}, found none ({len(absent)} of {len(named)} are absent); "
            f"{remedy_for(settings, 'freesurfer')}{way_out}."
        )
