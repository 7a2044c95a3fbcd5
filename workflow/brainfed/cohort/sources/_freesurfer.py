"""FreeSurfer's measures of a cohort, or as a further view of subjects with scans, listed before any job runs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from brainfed.cohort.phenotype import Row, cohort_rows, read_participant, read_table_text
from brainfed.cohort.settings import CohortSettings, FreeSurferSettings
from brainfed.cohort.sources._files import (
    EXCLUDED,
    Absence,
    ListedSubject,
    Listing,
    all_excluded,
    filled_on_disk,
    idle_confounds,
    list_row,
    lying_near,
    remedy_for,
)
from brainfed.runtime import UserError

HEMISPHERES = ("lh", "rh")
EDGE = r"[\s,;|\"']"
"""What stands on either side of a cell."""


def missing_measures(where: str, settings: FreeSurferSettings, remedy: str) -> Iterator[UserError]:
    """Mistakes of a cohort of measures that lacks tables or a SUBJECTS_DIR, with the remedy of an absent file."""
    if not settings.tables and settings.subjects_dir is None:
        yield UserError(
            f"{where}: source 'freesurfer' needs `freesurfer.tables` or `freesurfer.subjects_dir`, found neither; set "
            "one."
        )
    for table in settings.tables:
        if not Path(table).is_file():
            yield UserError(f"{where}: expected the FreeSurfer table {table}, found none; {remedy}.")
    if settings.subjects_dir is not None and not Path(settings.subjects_dir).is_dir():
        yield UserError(f"{where}: expected the SUBJECTS_DIR {settings.subjects_dir}, found no folder; {remedy}.")


def stats_names(settings: FreeSurferSettings) -> list[str]:
    """Names of the stats files to read for every subject of a SUBJECTS_DIR."""
    cortical = [f"{hemisphere}.{name}.stats" for name in settings.parcellations for hemisphere in HEMISPHERES]
    return [*(["aseg.stats"] if "volume" in settings.measures or settings.normalise != "none" else []), *cortical]


def stats_folder(settings: FreeSurferSettings, identity: str) -> Path:
    """Folder of the stats files of a subject of a SUBJECTS_DIR."""
    return Path(str(settings.subjects_dir)) / identity / "stats"


def has_stats(settings: FreeSurferSettings, identity: str) -> bool:
    """Whether a SUBJECTS_DIR is set and has stats files of a subject."""
    return settings.subjects_dir is not None and stats_folder(settings, identity).is_dir()


def measure_files(settings: FreeSurferSettings, identities: Sequence[str]) -> list[str]:
    """Files to read: the tables, or the existing stats files of subjects with these ids."""
    if settings.subjects_dir is None:
        return list(settings.tables)
    paths = (stats_folder(settings, identity) / name for identity in identities for name in stats_names(settings))
    return [str(path) for path in paths if path.is_file()]


def codes_held(settings: FreeSurferSettings, identities: Sequence[str], codes: Sequence[str]) -> list[str]:
    """The codes, in order, that a cell of these subjects' files may hold: another one changes nothing that a job reads.

    All of them where a file cannot be read.
    """
    if not codes:
        return []
    sought = {code: re.compile(rf"(?:^|{EDGE}){re.escape(code)}(?:$|{EDGE})") for code in codes}
    try:
        for file in measure_files(settings, identities):
            if settings.subjects_dir is None:
                text = "".join(read_table_text(file).lines)
            else:
                # A subject has its stats files; few files hold a code, and a look for its bytes is fast.
                content = Path(file).read_bytes()
                text = content.decode(errors="replace") if any(code.encode() in content for code in sought) else ""
            sought = {code: cell for code, cell in sought.items() if not cell.search(text)}
    except (OSError, UserError):
        return list(codes)
    return [code for code in codes if code not in sought]


# FreeSurfer's measures as a further view of subjects with scans: their ids, known before any job runs.


def further_measures(settings: CohortSettings) -> bool:
    """Whether a cohort of scans has FreeSurfer's measures too."""
    return settings.source != "freesurfer" and "morphometry" in settings.kinds


def further_source(name: str, settings: CohortSettings, root: str = "results") -> FreeSurferSettings:
    """Settings of the measures beside scans; a simulated table lies under `root`."""
    if not settings.simulates_thickness:
        return settings.freesurfer
    return replace(settings.freesurfer, tables=(f"{root}/{name}/simulated/thickness.tsv",), id="{subject}")


def further_identities(name: str, subjects: Sequence[ListedSubject], settings: CohortSettings) -> dict[str, str]:
    """Subject with a scan -> FreeSurfer's id, if its row gives one; a UserError if `freesurfer.id` has wrong braces."""
    source = further_source(name, settings)
    identities = {}
    for listed in subjects:
        if listed.has_series and (listed.file is not None or "{file" not in source.id):
            parts = {"file": listed.file, "subject": listed.label or listed.subject, "site": listed.site}
            identities[listed.subject] = _identity(name, source, parts)
    return identities


def _identity(name: str, source: FreeSurferSettings, parts: Mapping[str, str | None]) -> str:
    return filled_on_disk(name, "freesurfer.id", source.id, parts, partial(has_stats, source))


def unusable_measures(name: str, subjects: Sequence[ListedSubject], settings: CohortSettings) -> Iterator[UserError]:
    """Mistakes of measures beside scans: absent files, wrong braces, and ids that no folder of a SUBJECTS_DIR has.

    Ids in tables are compared when these are read.
    """
    if not further_measures(settings) or settings.simulates_thickness:
        return
    where, source = f"Cohort {name!r}", settings.freesurfer
    absent = list(missing_measures(where, source, remedy_for(settings, "freesurfer")))
    yield from absent
    try:
        identities = further_identities(name, subjects, settings)
    except UserError as error:
        yield error
        return
    if absent or source.subjects_dir is None:
        return
    folders = [stats_folder(source, identity) for identity in identities.values()]
    if not any(folder.is_dir() for folder in folders):
        first = f"{folders[0]} of subject {next(iter(identities))}" if folders else "of a subject with a FreeSurfer id"
        yield UserError(
            f"{where}: expected stats folders of its subjects in {source.subjects_dir}, found none of {len(folders)} "
            f"(the first is {first}); fix `freesurfer.id` or `columns.file`."
        )


def list_freesurfer(name: str, settings: CohortSettings) -> Listing:
    """The subjects of cohort `name` with source freesurfer.

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
    return Listing(settings.atlas, settings.tables, None, None, subjects)


def _unmet(name: str, settings: CohortSettings) -> Iterator[UserError]:
    where = f"Cohort {name!r}"
    for table in settings.tables or ("(not set)",):
        if not Path(table).is_file():
            yield UserError(
                f"{where}: expected the phenotype file {table}, found none; "
                f"{remedy_for(settings, 'phenotype', table)}{lying_near(table)}."
            )
    yield from missing_measures(where, settings.freesurfer, remedy_for(settings, "freesurfer"))
    yield from idle_confounds(name, settings)


def _listed(name: str, row: Row, settings: CohortSettings) -> ListedSubject:
    person, file = read_participant(row, settings), row.file(settings.columns)
    parts = {"file": file, "subject": row.file_id, "site": person.site}
    identity = None if file is None else _identity(name, settings.freesurfer, parts)
    return list_row(row, person, settings, _absence(identity, settings), identity)


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
