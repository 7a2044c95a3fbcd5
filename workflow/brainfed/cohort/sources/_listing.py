"""List the subjects of a cohort and their files before any job runs, whatever the source."""

import difflib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from brainfed.cohort.phenotype import ONE_SITE, Row, as_written, cohort_rows, graph_rows, read_participant
from brainfed.cohort.settings import CohortSettings, TUDatasetSettings
from brainfed.cohort.sources._bids_listing import list_bids
from brainfed.cohort.sources._files import (
    ANYWHERE,
    EXCLUDED,
    Absence,
    ListedSubject,
    Listing,
    all_excluded,
    atlas_files,
    files_below,
    filled_on_disk,
    list_row,
    located,
    lying_near,
    missing_inputs,
    none_but,
    remedy_for,
    shard_name,
    unlisted_files,
)
from brainfed.cohort.sources._freesurfer import list_freesurfer, stats_folder, unusable_measures
from brainfed.runtime import UserError, pass_over

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
    """Mistakes of files that no rule can name: each file of the cohort, and the first of its subjects with a series.

    `cohorts` are all that the run makes: results of another run are inputs like others.
    """
    if settings.source == "simulate":
        return
    where, unusable = f"Cohort {name!r}", _unusable(name, cohorts)
    of_all = (*tables, *atlas_files(settings), *settings.freesurfer.tables, settings.freesurfer.subjects_dir)
    for path in of_all:
        if path is not None and (wrong := unusable(path)):
            yield UserError(f"{where}: {wrong}.")
    files = ((listed.subject, path) for listed in subjects if listed.has_series for path in _files(listed, settings))
    refused = [(subject, wrong) for subject, path in files if (wrong := unusable(path))]
    if refused:
        subject, wrong = refused[0]
        yield UserError(f"{where}, subject {subject}: {wrong} ({len(dict(refused))} such subjects).")


def _unusable(name: str, cohorts: Collection[str]) -> Callable[[str], str]:
    """What is wrong with a path: expected against found, and what to do; empty for one that cohort `name` can use.

    The folders that a run of `cohorts` writes are compared as they are named and where links lead.
    """
    every = dict.fromkeys((name, *cohorts))
    folders = [(cohort, place) for cohort in every for place in _places(Path("results", cohort))]

    @cache
    def holding(folder: Path) -> str:
        places = _places(folder)
        return next((cohort for cohort, own in folders if any(place.is_relative_to(own) for place in places)), "")

    def wrong(path: str) -> str:
        if RESERVED & set(path):
            return f"expected a path without braces and angle brackets, found {path}; rename the file or folder"
        file = Path(path)
        # Many files lie in one folder, whose links are followed once.
        cohort = holding(file if file.is_symlink() or file.is_dir() else file.parent)
        if not cohort:
            return ""
        other = "" if cohort == name else f", or make cohort {cohort!r} by a config of its own"
        return (
            f"expected a file outside results/{cohort}, which the run writes, found {path}; move it, for example to "
            f"data{other}"
        )

    return wrong


def _places(path: Path) -> set[Path]:
    return {Path(os.path.normpath(path.absolute())), path.resolve()}


def _files(listed: ListedSubject, settings: CohortSettings) -> list[str]:
    """Files of a subject that rules read."""
    if settings.source == "freesurfer":
        folder = settings.freesurfer.subjects_dir
        return [] if folder is None else [str(stats_folder(settings.freesurfer, str(listed.series)))]
    runs = [path for run in listed.runs for path in (run.image, run.confounds, run.mask, run.components, *run.sidecars)]
    return [path for path in (listed.series, listed.confounds, *runs) if path is not None]


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
    sizes = dict.fromkeys(shares, 0)
    parts: list[str] = []
    for dealt in range(1, count + 1):
        part = max(shares, key=lambda name: dealt * shares[name] / total - sizes[name])
        sizes[part] += 1
        parts.append(part)
    return parts


def simulated_subjects(settings: CohortSettings) -> dict[str, str]:
    """Subject id -> site of a simulated cohort; one more subject leaves the others where they are."""
    simulate = settings.simulate
    sites = apportion({name: site.share for name, site in simulate.sites.items()}, simulate.subjects)
    return {f"sub-{number:04d}": site for number, site in enumerate(sites, start=1)}


def list_simulated(settings: CohortSettings, folder: str) -> Listing:
    """The subjects of a simulated cohort, whose files will lie in `folder`."""
    subjects = []
    for subject, site in simulated_subjects(settings).items():
        scan, shard = f"{folder}/{subject}_bold.nii.gz", shard_name(subject, settings.shards)
        subjects.append(ListedSubject(subject, site, scan, None, "", shard, file=subject))
    files = (f"{folder}/atlas.nii.gz", f"{folder}/atlas.tsv")
    return Listing(settings.atlas, (f"{folder}/participants.tsv",), *files, tuple(subjects))


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
    """Mistakes of a cohort of graphs without data sets or their files; `fetch` (empty: `FETCH`) downloads them."""
    if not settings.names:
        yield UserError(
            f"{where}: source 'tudataset' needs `tudataset.names`, found none; name a data set, such as PROTEINS."
        )
    for name in settings.names:
        paths = (text_file(settings, name, part) for part in NEEDED)
        if missing := next((path for path in paths if not path.is_file()), None):
            yield UserError(
                f"{where}: expected the file {missing} of the data set {name}, found none{_near(settings, name)}; fix "
                f"`tudataset`, or run `{fetch or FETCH}` with this config where there is a network."
            )


def _near(settings: TUDatasetSettings, name: str) -> str:
    """A data set of a similar name in the folder; empty if there is none."""
    folder = Path(settings.folder)
    present = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    folded = {other.casefold(): other for other in present if other != name}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return f" (did you mean {folded[near[0]]}?)" if near else ""


def list_graphs(name: str, settings: CohortSettings) -> Listing:
    """The graphs of cohort `name`; a UserError if no data set is named, a file is absent, or labels are unusable."""
    source = settings.tudataset
    for mistake in missing_graphs(f"Cohort {name!r}", source, settings.fetch):
        raise mistake
    tables = tuple(str(text_file(source, data_set, "graph_labels")) for data_set in source.names)
    own = as_written(settings)
    folders = {data_set: str(raw_folder(source, data_set)) for data_set in source.names}
    people = ((row, read_participant(row, own)) for row in graph_rows(tables, own.classes))
    subjects = tuple(list_row(row, person, own, "", folders[person.site]) for row, person in people)
    return Listing(settings.atlas, tables, None, None, subjects)


# List the subjects of a cohort and the paths of their series before any job runs (no checkpoint needed).
#
# Images and series are listed here by path patterns; BIDS derivatives and FreeSurfer's measures have own modules.


def list_cohort(name: str, settings: CohortSettings, root: str = "results", cohorts: Collection[str] = ()) -> Listing:
    """The subjects of cohort `name`; results lie under `root`, those of all `cohorts` of a run among them.

    Raises:
        UserError: a setting that the source needs is empty, the phenotype table is absent or broken, no series
            exists, several files fit the series of a subject, a series or confound file is absent and `on_invalid`
            is `error`, or Snakemake cannot take the path of a file, or the run writes where it lies.
    """
    listing = _listing(name, settings, root)
    for mistake in (
        *unusable_paths(name, listing.tables, settings, listing.subjects, cohorts),
        *unusable_measures(name, listing.subjects, settings),
    ):
        raise mistake
    return listing


def _listing(name: str, settings: CohortSettings, root: str) -> Listing:
    if settings.source == "simulate":
        return list_simulated(settings, f"{root}/{name}/simulated")
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
    return Listing(settings.atlas, settings.tables, *atlas_files(settings), subjects, unlisted)


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

    def exists(path: str) -> bool:
        return os.path.lexists(path) or path.partition(ANYWHERE)[2] in below

    file, column = row.file(settings.columns), settings.columns.site
    site = ONE_SITE if column is None else row.cells[column] or ""
    parts = {"file": file, "subject": row.file_id, "site": settings.codes.site.get(site, site)}
    return None if file is None else filled_on_disk(name, "series", str(settings.series), parts, exists)


def list_subject(name: str, row: Row, settings: CohortSettings, below: Mapping[str, Sequence[str]]) -> ListedSubject:
    """One row of the table with the files that its patterns name; `below` are the `files_below` a pattern with `**`.

    Raises:
        UserError: a cell of the row is invalid, a pattern has wrong braces, or several files fit.
    """
    person, file = read_participant(row, settings), row.file(settings.columns)
    series, confounds = _series(name, row, settings, below), None
    if series is not None and not person.excluded:
        series = located(name, series, below)
    if file is not None and settings.confounds is not None:
        parts = {"file": file, "subject": row.file_id, "site": person.site}
        confounds = filled_on_disk(name, "confounds", settings.confounds, parts, os.path.lexists)
    return list_row(row, person, settings, _absence(series, confounds), series, confounds)


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
