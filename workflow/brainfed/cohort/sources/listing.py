"""List the subjects of a cohort and their files before any job runs, whatever the source."""

import difflib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from brainfed.cohort.phenotype.participant import COLUMNS, ONE_SITE, SITE, class_codes, graph_rows, read_participant
from brainfed.cohort.phenotype.table import Row, cohort_rows
from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.settings.sources import TUDatasetSettings
from brainfed.cohort.sources.bids_listing import list_bids
from brainfed.cohort.sources.files import (
    ANYWHERE,
    EXCLUDED,
    Absence,
    ListedSubject,
    Listing,
    all_excluded,
    atlas_files,
    files_below,
    filled_on_disk,
    located,
    lying_near,
    missing_inputs,
    none_but,
    remedy_for,
    shard_name,
    unlisted_files,
)
from brainfed.cohort.sources.freesurfer import list_freesurfer, stats_folder, unusable_measures
from brainfed.runtime.errors import UserError, pass_over

# Refuse paths that Snakemake misreads, as braces are its wildcards and angle brackets its path variables.
#
# And inputs in the folder that the run writes, where a job may replace them and `make prune` delete them.

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


# Assign subjects to parts by shares, one after the other; a longer list starts like a shorter one.


def apportion(shares: Mapping[str, float], count: int) -> list[str]:
    """Part of each of `count` subjects.

    Each subject goes to the part that lags furthest behind its share; after n subjects every part
    holds its share of n to within one subject or two, and the first n never depend on `count`.

    Raises:
        ValueError: no part has a positive share.
    """
    total = sum(shares.values())
    if total <= 0:
        raise ValueError(f"expected at least one positive share, found {dict(shares)}")
    held = dict.fromkeys(shares, 0)
    parts: list[str] = []
    for dealt in range(1, count + 1):
        part = max(shares, key=lambda name: dealt * shares[name] / total - held[name])
        held[part] += 1
        parts.append(part)
    return parts


# List a cohort of simulated scans.


def simulated_subjects(settings: CohortSettings) -> dict[str, str]:
    """Subject id -> site of a simulated cohort; one more subject leaves the others where they are."""
    simulate = settings.simulate
    sites = apportion({name: site.share for name, site in simulate.sites.items()}, simulate.subjects)
    return {f"sub-{number:04d}": site for number, site in enumerate(sites, start=1)}


def list_simulated(name: str, settings: CohortSettings, folder: str) -> Listing:
    """List cohort `name`; its files will lie in `folder`."""
    subjects = tuple(
        ListedSubject(
            subject,
            site,
            f"{folder}/{subject}_bold.nii.gz",
            None,
            "",
            shard_name(subject, settings.shards),
            file=subject,
        )
        for subject, site in simulated_subjects(settings).items()
    )
    return Listing(
        name, settings.atlas, f"{folder}/participants.tsv", f"{folder}/atlas.nii.gz", f"{folder}/atlas.tsv", subjects
    )


# Files of data sets in the text format of the TU Dortmund collection; no file is opened.

FETCH = "snakemake fetch_tudatasets --cores 1"
NEEDED = ("A", "graph_indicator", "graph_labels")
"""Parts that every data set has; a download that lacks one stopped half way."""
OPTIONAL = ("node_labels", "node_attributes")


def raw_folder(settings: TUDatasetSettings, name: str) -> Path:
    """Folder of the text files of a data set: `NAME/raw`, as PyTorch Geometric keeps them, or `NAME`."""
    folder = Path(settings.folder) / name
    return folder / "raw" if (folder / "raw").is_dir() else folder


def text_file(settings: TUDatasetSettings, name: str, part: str) -> Path:
    """One file of a data set, `PROTEINS_A.txt`."""
    return raw_folder(settings, name) / f"{name}_{part}.txt"


def graph_files(settings: TUDatasetSettings) -> list[str]:
    """All files to read; those of node labels and attributes where they exist."""
    needed = [text_file(settings, name, part) for name in settings.names for part in NEEDED]
    further = [text_file(settings, name, part) for name in settings.names for part in OPTIONAL]
    return [str(path) for path in (*needed, *(path for path in further if path.is_file()))]


def missing_graphs(where: str, settings: TUDatasetSettings, fetch: str = "") -> Iterator[UserError]:
    """Mistakes of a cohort of graphs without data sets, or without their files.

    Args:
        where: name of the cohort in the message.
        settings: settings of the cohort's graphs.
        fetch: command that downloads them; empty: `FETCH`.
    """
    if not settings.names:
        yield UserError(
            f"{where}: source 'tudataset' needs `tudataset.names`, found none; name a data set, such as PROTEINS."
        )
    for name in settings.names:
        for part in NEEDED:
            path = text_file(settings, name, part)
            if not path.is_file():
                yield UserError(
                    f"{where}: expected the file {path} of the data set {name}, found none{_near(settings, name)}; fix "
                    f"`tudataset`, or run `{fetch or FETCH}` with this config where there is a network."
                )
                break


def _near(settings: TUDatasetSettings, name: str) -> str:
    """A data set of a similar name in the folder; empty if there is none."""
    folder = Path(settings.folder)
    present = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    folded = {other.casefold(): other for other in present if other != name}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return f" (did you mean {folded[near[0]]}?)" if near else ""


# List a cohort of public graphs: a graph stands where other cohorts have a subject.


def list_graphs(name: str, settings: CohortSettings) -> Listing:
    """List cohort `name` with source tudataset.

    Raises:
        UserError: no data set is named, a file is absent, or the labels are unusable.
    """
    source = settings.tudataset
    for mistake in missing_graphs(f"Cohort {name!r}", source, settings.fetch):
        raise mistake
    tables = tuple(str(text_file(source, data_set, "graph_labels")) for data_set in source.names)
    codes = class_codes(settings.classes)
    subjects = tuple(
        ListedSubject(
            row.subject,
            str(row.cells[SITE]),
            str(raw_folder(source, str(row.cells[SITE]))),
            None,
            "",
            shard_name(row.subject, settings.shards),
            person=read_participant(row.table, row, COLUMNS, codes, settings.target, settings.classes),
        )
        for row in graph_rows(tables, settings.class_names)
    )
    return Listing(name, settings.atlas, tables if len(tables) > 1 else tables[0], None, None, subjects)


# List the subjects of a cohort and the paths of their series before any job runs (no checkpoint needed).
#
# The module needs csv only, as the Snakefile imports it in every job. It lists images and series by path patterns; BIDS
# derivatives, FreeSurfer's measures and simulations have modules of their own.


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
