"""Who is in a cohort and where each series lies, known before any job runs (no checkpoint needed).

Only the csv module: the Snakefile imports this in every job.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from brainfed.cohort.apportion import apportion
from brainfed.cohort.bids_run import BidsRun
from brainfed.cohort.freesurfer_files import stats_folder, unmet_measures
from brainfed.cohort.known_atlases import FETCH, KNOWN_ATLASES, atlas_files
from brainfed.cohort.participant import read_participant
from brainfed.cohort.phenotype_table import Row, read_phenotype_table
from brainfed.cohort.settings import CohortSettings
from brainfed.cohort.unlisted import unlisted_files
from brainfed.runtime.entry import resolve
from brainfed.runtime.errors import UserError

Absence = Literal[
    "",
    "excluded by diagnosis",
    "no series",
    "series file absent",
    "confounds file absent",
    "brain mask absent",
    "no FreeSurfer id",
    "stats folder absent",
]
EXCLUDED: Absence = "excluded by diagnosis"
LIST_BIDS = "brainfed.cohort.bids_listing:list_bids"
NEEDED = {"nifti": ("phenotype", "series"), "timeseries": ("phenotype", "series", "regions"), "bids": ()}


@dataclass(frozen=True)
class ListedSubject:
    """One subject and its files.

    Attributes:
        series: path of the series, or FreeSurfer's id of the subject; None where the table names no file.
        confounds: path of the confound table, None where the cohort has none.
        absence: why there is no series (or no measures) to use: the diagnosis excludes the subject, the table names no
            file, or a named file is absent; empty: there is one, or it will be simulated.
        shard: name of the part that holds the subject's series, `shard-03`.
        labelled: whether what is learnt is known of the subject.
        runs: the files of each run (source bids), of which `series` and `confounds` are the first's.
    """

    subject: str
    site: str
    series: str | None
    confounds: str | None
    absence: Absence
    shard: str
    labelled: bool = True
    runs: tuple[BidsRun, ...] = ()

    @property
    def has_series(self) -> bool:
        """Whether there is a series to use."""
        return not self.absence


@dataclass(frozen=True)
class Listing:
    """A cohort as its tables and the file system show it, subjects in ascending order of their id.

    `unlisted` names the series that no row of the tables names: files that fit their pattern, or, with source bids,
    subjects that have images.
    """

    cohort: str
    atlas: str
    phenotype: str | tuple[str, ...]
    parcellation: str | None
    labels: str | None
    subjects: tuple[ListedSubject, ...]
    unlisted: tuple[str, ...] = ()

    @property
    def labelled_sites(self) -> tuple[str, ...]:
        """Names, ascending, of the sites with a subject that can be scored: those that are left out in turn."""
        return tuple(sorted({listed.site for listed in self.subjects if listed.labelled}))

    @property
    def motion_tables(self) -> dict[str, list[str]]:
        """Subject id -> fMRIPrep's tables of confounds, which tell how much it moved, for those that have any."""
        tables = {one.subject: [run.confounds for run in one.runs if run.confounds] for one in self.subjects}
        return {subject: files for subject, files in tables.items() if files}

    @property
    def shards(self) -> tuple[str, ...]:
        """The parts that hold at least one series, in ascending order."""
        return tuple(sorted({listed.shard for listed in self.subjects if listed.has_series}))

    @property
    def with_series(self) -> tuple[str, ...]:
        """Ids of the subjects that have a series."""
        return tuple(listed.subject for listed in self.subjects if listed.has_series)

    @property
    def absences(self) -> dict[str, str]:
        """Subject id -> why it has no series to use, for those that have none."""
        return {listed.subject: listed.absence for listed in self.subjects if listed.absence}

    def members(self, shard: str) -> tuple[ListedSubject, ...]:
        """The subjects of one part that have a series."""
        return tuple(listed for listed in self.subjects if listed.shard == shard and listed.has_series)


def shard_name(subject: str, shards: int) -> str:
    """The part that a subject's id hashes to; other subjects do not matter."""
    number = int.from_bytes(hashlib.sha256(subject.encode()).digest()[:8], "big") % shards
    return f"shard-{number:02d}"


def list_cohort(name: str, settings: CohortSettings, root: str = "results") -> Listing:
    """List cohort `name`; results lie under `root`.

    Raises:
        UserError: a setting that the source needs is empty, the phenotype table is absent or broken, no series
            exists at all, or a series or confound file is absent and `on_invalid` is `error`.
    """
    if settings.source == "simulate":
        return _list_simulated(name, settings, f"{root}/{name}/simulated")
    if settings.source == "bids":
        return cast(Listing, resolve(LIST_BIDS)(name, settings))
    for mistake in unmet(name, settings):
        raise mistake
    rows = read_phenotype_table(settings.tables, settings.columns, settings.missing, wanted=settings.rows)
    subjects = tuple(list_subject(name, row, settings) for row in rows)
    unlisted: tuple[str, ...] = ()
    if settings.kind == "connectivity":
        unlisted = unlisted_files(str(settings.series), [listed.series for listed in subjects if listed.series])
    for mistake in absent_files(name, subjects, settings, unlisted):
        raise mistake
    tables = settings.tables if len(settings.tables) > 1 else settings.tables[0]
    if settings.kind == "morphometry":
        return Listing(name, settings.atlas, tables, None, None, subjects)
    files = atlas_files(settings)
    return Listing(name, settings.atlas, tables, files.parcellation, files.labels, subjects, unlisted)


def unmet(name: str, settings: CohortSettings) -> Iterator[UserError]:
    """What a cohort of images, series or measures lacks before its table is read: settings, and the files they name."""
    yield from _unmet_measures(name, settings) if settings.kind == "morphometry" else _unmet_series(name, settings)
    if settings.confounds is not None and settings.source in ("timeseries", "freesurfer"):
        yield UserError(
            f"Cohort {name!r}: confounds are regressed out of NIfTI images only, found source {settings.source!r}; "
            "remove `confounds`."
        )


def _unmet_series(name: str, settings: CohortSettings) -> Iterator[UserError]:
    files = atlas_files(settings)
    for key in NEEDED[settings.source]:
        if getattr(settings, key) is None:
            yield UserError(f"Cohort {name!r}: source {settings.source!r} needs `{key}`, found nothing; set it.")
    if settings.source != "timeseries" and files.parcellation is None:
        yield UserError(
            f"Cohort {name!r}: source {settings.source!r} needs `parcellation`, or an `atlas` among "
            f"{', '.join(KNOWN_ATLASES)}, found neither (atlas {settings.atlas!r}); set one."
        )
    tables = [("phenotype", table) for table in settings.tables]
    for key, path in (*tables, ("parcellation", files.parcellation), ("labels", files.labels)):
        if path is not None and not Path(path).is_file():
            remedy = (
                f"run `{FETCH}` with this config or mend `atlas`"
                if key != "phenotype" and path != getattr(settings, key)
                else _remedy(settings, key)
            )
            yield UserError(f"Cohort {name!r}: expected the {key} file {path}, found none; {remedy}.")


def _unmet_measures(name: str, settings: CohortSettings) -> Iterator[UserError]:
    where = f"Cohort {name!r}"
    for table in settings.tables or ("(not set)",):
        if not Path(table).is_file():
            yield UserError(
                f"{where}: expected the phenotype file {table}, found none; {_remedy(settings, 'phenotype')}."
            )
    yield from unmet_measures(where, settings.freesurfer, _remedy(settings, "freesurfer"))


def simulated_subjects(settings: CohortSettings) -> dict[str, str]:
    """Subject id -> site of a simulated cohort; one more subject leaves the others where they are."""
    simulate = settings.simulate
    sites = apportion({name: site.share for name, site in simulate.sites.items()}, simulate.subjects)
    return {f"sub-{number:04d}": site for number, site in enumerate(sites, start=1)}


def _list_simulated(name: str, settings: CohortSettings, folder: str) -> Listing:
    subjects = tuple(
        ListedSubject(subject, site, f"{folder}/{subject}_bold.nii.gz", None, "", shard_name(subject, settings.shards))
        for subject, site in simulated_subjects(settings).items()
    )
    return Listing(
        name, settings.atlas, f"{folder}/participants.tsv", f"{folder}/atlas.nii.gz", f"{folder}/atlas.tsv", subjects
    )


def list_subject(name: str, row: Row, settings: CohortSettings) -> ListedSubject:
    """One row of the table with the files that its patterns name.

    Raises:
        UserError: a cell of the row means nothing, or a pattern has wrong braces.
    """
    columns = settings.columns
    participant = read_participant(row.table, row, columns, settings.codes, settings.target)
    site = participant.site
    file = row.subject if columns.file is None else row.cells[columns.file]
    parts = {"file": file, "subject": row.subject, "site": site}
    series = confounds = None
    if file is not None and settings.kind == "morphometry":
        series = _fill(name, "freesurfer.id", settings.freesurfer.id, parts)
    elif file is not None:
        series = _fill(name, "series", str(settings.series), parts)
    if file is not None and settings.confounds is not None:
        confounds = _fill(name, "confounds", settings.confounds, parts)
    shard = shard_name(row.subject, settings.shards)
    labelled = participant.diagnosis is not None and not participant.excluded
    absence = _absence(series, confounds) if settings.kind == "connectivity" else _unmeasured(series, settings)
    if participant.excluded:
        absence = EXCLUDED
    return ListedSubject(row.subject, site, series, confounds, absence, shard, labelled)


def _unmeasured(identity: str | None, settings: CohortSettings) -> Absence:
    """Of tables it is not known here who has a row in them."""
    if identity is None:
        return "no FreeSurfer id"
    source = settings.freesurfer
    return "" if source.subjects_dir is None or stats_folder(source, identity).is_dir() else "stats folder absent"


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
    """Refuse absent files, all of them or, unless their subjects are to be dropped, any."""
    where = f"Cohort {name!r}"
    wanted = [listed for listed in subjects if listed.absence != EXCLUDED]
    if not wanted:
        yield nobody_wanted(name, len(subjects))
        return
    named = [listed for listed in wanted if listed.series is not None]
    if settings.kind == "morphometry":
        yield from _absent_stats(where, named, settings)
        return
    without_series = [listed for listed in named if listed.absence == "series file absent"]
    if len(without_series) == len(named):
        yield UserError(
            f"{where}: expected the series of {len(wanted)} subjects at {settings.series}, found none; "
            f"{_remedy(settings, 'series')}{_other_names(wanted, unlisted)}."
        )
        return
    without_confounds = [listed for listed in named if listed.absence == "confounds file absent"]
    if len(without_series) + len(without_confounds) == len(named):
        yield UserError(f"{where}: expected confound tables at {settings.confounds}, found none; mend `confounds`.")
        return
    for key, absent in (("series", without_series), ("confounds", without_confounds)):
        if absent and settings.on_invalid == "error":
            first = absent[0]
            yield UserError(
                f"{where}: expected the {key} file {getattr(first, key)} of subject {first.subject}, found none "
                f"({len(absent)} of {len(named)} are absent); {_remedy(settings, key)}, or set on_invalid: drop to "
                "leave such subjects out."
            )


def _absent_stats(where: str, named: Sequence[ListedSubject], settings: CohortSettings) -> Iterator[UserError]:
    if not named:
        yield UserError(f"{where}: expected a subject with a FreeSurfer id, found none; mend `columns.file`.")
    absent = [listed for listed in named if listed.absence]
    if absent and (settings.on_invalid == "error" or len(absent) == len(named)):
        yield UserError(
            f"{where}: expected the folder {stats_folder(settings.freesurfer, str(absent[0].series))} of subject "
            f"{absent[0].subject}, found none ({len(absent)} of {len(named)} are absent); "
            f"{_remedy(settings, 'freesurfer')}"
            f"{'' if len(absent) == len(named) else ', or set on_invalid: drop to leave such subjects out'}."
        )


def nobody_wanted(name: str, subjects: int) -> UserError:
    """The mistake of codes that exclude everybody."""
    return UserError(
        f"Cohort {name!r}: expected a subject whose diagnosis keeps it in the cohort, found {subjects} that "
        "codes.diagnosis excludes; mend the codes."
    )


def _fill(name: str, key: str, pattern: str, parts: dict[str, str | None]) -> str:
    try:
        return pattern.format_map(parts)
    except (KeyError, ValueError, IndexError) as error:
        raise UserError(
            f"Cohort {name!r}: expected {{file}}, {{subject}} or {{site}} in the `{key}` pattern, found {pattern!r} "
            f"({error}); mend the braces."
        ) from error


def _other_names(subjects: Sequence[ListedSubject], unlisted: Sequence[str]) -> str:
    """What else lies where the series should be: often ids that a spreadsheet took for numbers."""
    if not unlisted:
        return ""
    padded = [listed.subject for listed in subjects if any(f"0{listed.subject}" in file for file in unlisted)]
    hint = ", whose ids have leading zeros: write {subject:0>7} for seven digits" if padded else ""
    return f" ({len(unlisted)} files that no row names lie there, the first is {unlisted[0]}{hint})"


def _remedy(settings: CohortSettings, key: str) -> str:
    return f"run `{settings.fetch}` or mend `{key}`" if settings.fetch else f"mend `{key}`"
