"""Rows without a file, files without a row, and rows that share one."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from brainfed.checking.finding import Finding, named
from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.sources.below import files_below
from brainfed.cohort.sources.freesurfer.further import further_measures
from brainfed.cohort.sources.known_atlases import atlas_files
from brainfed.cohort.sources.listed import EXCLUDED, ListedSubject
from brainfed.cohort.sources.listing import absent_files, list_cohort, named_series
from brainfed.cohort.sources.path_patterns import none_but, remedy_for
from brainfed.cohort.sources.unlisted import unlisted_files
from brainfed.cohort.sources.usable_paths import unusable_paths
from brainfed.configuration.layout.cohort_inputs import CohortInputs
from brainfed.runtime.errors import UserError
from brainfed.runtime.records.contents import dated_ahead


def check_files(name: str, listed: Sequence[ListedSubject], settings: CohortSettings, place: str) -> Iterator[Finding]:
    """Rows whose files are absent, not named, or another row's."""
    if not listed:
        return
    yield from _absent(name, listed, settings, place)
    yield from (
        Finding("stops", place, str(mistake)) for mistake in unusable_paths(name, settings.tables, settings, listed)
    )
    unnamed = tuple(one.subject for one in listed if one.absence == "no series")
    if unnamed:
        sentence = f"{len(unnamed)} of {len(listed)} rows name no file and are left out: {named(unnamed)}."
        yield Finding("notes", place, sentence, unnamed)
    yield from _shared(listed, place)


def _absent(name: str, listed: Sequence[ListedSubject], settings: CohortSettings, place: str) -> Iterator[Finding]:
    everybody = [*absent_files(name, listed, replace(settings, on_invalid="drop"))]
    yield from (Finding("stops", place, str(mistake)) for mistake in everybody)
    if everybody:
        return
    wanted = [one for one in listed if one.absence != EXCLUDED and one.series is not None]
    for absence, kind in (("series file absent", "series"), ("confounds file absent", "confounds")):
        without = [one for one in listed if one.absence == absence]
        if not without:
            continue
        subjects = tuple(one.subject for one in without)
        remedy = ("" if settings.fetch else "bring the files, ") + remedy_for(settings, kind)
        folders = [getattr(one, kind) for one in without if Path(getattr(one, kind)).is_dir()]
        found = f"a folder at {folders[0]}" if folders else none_but(str(getattr(without[0], kind)))
        yield Finding(
            "stops" if settings.on_invalid == "error" else "drops",
            place,
            f"Cohort {name!r}: expected the {kind} file {getattr(without[0], kind)} of subject {subjects[0]}, found "
            f"{found} ({len(without)} of {len(wanted)} are absent: {named(subjects)}); {remedy}, "
            f"or {'set `on_invalid: drop`' if settings.on_invalid == 'error' else 'take the rows out of the table'}.",
            subjects,
        )


def check_orphans(listed: Sequence[ListedSubject], settings: CohortSettings, place: str) -> Iterator[Finding]:
    """Files that the pattern finds and no row names; `listed` are all rows."""
    pattern = str(settings.series)
    below = files_below(pattern)
    orphans = unlisted_files(pattern, named_series(place, listed, settings, below), below)
    if orphans:
        yield Finding(
            "notes",
            place,
            f"{settings.series}: {len(orphans)} files belong to no row of the table, the first is {orphans[0]}; add "
            "rows, or fix the ids if they should be found.",
        )


def check_dates(name: str, settings: CohortSettings, place: str) -> Iterator[Finding]:
    """Tables and files that are dated after now, as by a scanner's or a server's clock."""
    try:
        listing = list_cohort(name, settings)
    except UserError:
        return
    inputs = CohortInputs(name, settings, listing)
    files = [*settings.tables, *filter(None, atlas_files(settings)), *inputs.graph_files()]
    for one in listing.subjects:
        runs = [path for run in one.runs for path in (run.image, run.confounds, run.mask, *run.sidecars)]
        files += filter(None, (one.series, one.confounds, *runs))
    if settings.kind == "morphometry" or further_measures(settings):
        files += inputs.stats_files()
    if said := dated_ahead(dict.fromkeys(files)):
        yield Finding("notes", place, f"{said[0].upper()}{said[1:]}")


def check_others(name: str, settings: CohortSettings, cohorts: Collection[str], place: str) -> Iterator[Finding]:
    """Files that lie where the run writes another of its `cohorts`; those in its own results are found with it."""
    try:
        listing = list_cohort(name, replace(settings, on_invalid="drop"))
    except UserError:
        return
    tables = CohortInputs(name, settings, listing).phenotype_tables
    yield from (
        Finding("stops", place, str(mistake))
        for mistake in unusable_paths(name, tables, settings, listing.subjects, cohorts)
    )


def _shared(listed: Sequence[ListedSubject], place: str) -> Iterator[Finding]:
    owners: dict[str, list[str]] = {}
    for one in listed:
        if one.has_series:
            owners.setdefault(str(one.series), []).append(one.subject)
    for path, subjects in owners.items():
        if len(subjects) > 1:
            yield Finding(
                "notes",
                place,
                f"{path}: expected one subject, found {len(subjects)} ({named(subjects)}), which count as twins; fix "
                "columns.file or the pattern if they are several people.",
                tuple(subjects),
            )
