"""The phenotype table and the files that it names: rows that cannot be used, unknown values, absent files."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from brainfed.checking._finding import Finding, boundary, collected, found_at, named, note, place_of, severity_of
from brainfed.checking._people import NAMED_NONE, Table
from brainfed.cohort import class_words
from brainfed.cohort.phenotype import ONE_SITE, Participant, Row, cohort_rows, ingest, read_participant
from brainfed.cohort.settings import CohortSettings
from brainfed.cohort.sources import (
    EXCLUDED,
    ListedSubject,
    Listing,
    absent_files,
    atlas_files,
    files_below,
    further_measures,
    list_cohort,
    list_subject,
    missing_inputs,
    named_series,
    none_but,
    remedy_for,
    unlisted_files,
    unusable_paths,
    wanted_files,
)
from brainfed.configuration.layout import CohortInputs
from brainfed.runtime import UserError, pass_over
from brainfed.runtime.records import dated_ahead


def read_table(name: str, settings: CohortSettings) -> Table | list[Finding]:
    """The table of a cohort whose `series` are a pattern; findings alone where there is no table or pattern."""
    files, place = place_of(name, "files"), place_of(name, "phenotype table")
    missing = [found_at(files, mistake) for mistake in missing_inputs(name, settings)]
    if settings.series is None or not settings.tables or not all(map(os.path.isfile, settings.tables)):
        return missing
    listed, participants, findings = read_roster(name, settings, place)
    complete = not findings
    if listed:
        findings += collected(place, reading_remarks, settings.tables, settings)
    findings += [*missing, *collected(files, check_files, name, listed, settings)]
    if complete:
        findings += collected(place, remarks, participants, settings)
        findings += collected(files, check_orphans, name, listed, settings)
    rows = {subject: (person.site, person.diagnosis) for subject, person in participants.items()}
    mean_fd = {subject: person.mean_fd for subject, person in participants.items()}
    return Table(tuple(listed), rows, mean_fd, tuple(findings), complete)


def list_table(name: str, settings: CohortSettings) -> tuple[Listing, Table] | list[Finding]:
    """The tables and files of a cohort whose files the workflow finds by itself; its mistakes where it cannot."""
    place = place_of(name, "tables and files")
    wrong: list[UserError] = []
    with boundary(place, wrong.append):
        listing = list_cohort(name, replace(settings, on_invalid="drop"))
        people = ingest(listing.tables, settings, listing.absences, listing.motion_tables).set_index("subject")
    if wrong:
        return [found_at(place, error) for error in wrong]
    rows = {
        str(subject): (site, int(label) if label >= 0 else None)
        for subject, site, label in people[["site", "diagnosis"]].astype({"diagnosis": "float64"}).itertuples()
    }
    unknown = [subject for subject, (_, label) in rows.items() if label is None]
    left_out = collected(place, _left_out, listing, settings)
    findings = collected(place, reading_remarks, listing.tables, settings)
    findings += [replace(_unlabelled(unknown, len(rows), settings), place=place)] if unknown else []
    dropped = frozenset(subject for finding in left_out if finding.severity == "drops" for subject in finding.subjects)
    mean_fd = dict(zip(rows, people["mean_fd"].astype("float64"), strict=True))
    return listing, Table(listing.subjects, rows, mean_fd, (*findings, *left_out), dropped=dropped)


def read_roster(
    name: str, settings: CohortSettings, place: str
) -> tuple[list[ListedSubject], dict[str, Participant], list[Finding]]:
    """The subjects and participants of the rows that a job can read, and a finding for every other row."""
    findings: list[Finding] = []

    def refuse(error: UserError, *subjects: str) -> None:
        findings.append(found_at(place, error, subjects=subjects))

    listed: list[ListedSubject] = []
    participants: dict[str, Participant] = {}
    below: Mapping[str, Sequence[str]] = {}
    with boundary(f"Cohort {name!r}, {settings.series}", refuse):
        below = files_below(str(settings.series))
    rows: list[Row] = []
    with boundary(", ".join(settings.tables), refuse):
        rows = cohort_rows(settings.tables, settings, refuse)
    for row in rows:
        mistakes: list[UserError] = []
        with boundary(f"{row.table}, line {row.line}", mistakes.append):
            participants[row.subject] = read_participant(row, settings)
            listed.append(list_subject(name, row, settings, below))
        for error in mistakes:
            refuse(error, row.subject)
    return listed, participants, findings


def reading_remarks(tables: Sequence[str], settings: CohortSettings) -> Iterator[Finding]:
    """Notes on cells that do not mean what they spell: codes read as missing, ids read without `.0`."""
    rows = cohort_rows(tables, settings, pass_over)
    usual = {"n/a", *settings.missing}
    codes = sorted({code for row in rows for code in row.absent.values()} - usual)
    if codes:
        columns = dict.fromkeys(name for row in rows for name, code in row.absent.items() if code in codes)
        concerned = tuple(row.subject for row in rows if not usual.issuperset(row.absent.values()))
        yield note(
            f"{', '.join(map(repr, codes))} in {', '.join(columns)} read as missing, as n/a is, in {len(concerned)} of "
            f"{len(rows)} rows: {named(concerned)}; name such a code under `codes` if it is a value.",
            concerned,
        )
    if settings.columns.site is None and rows:
        yield note(f"columns.site is none: all {len(rows)} subjects come from one site, called {ONE_SITE}.")
    if rows and all(f"{row.label}.0" in map(row.cells.get, settings.columns.ids) for row in rows):
        yield note(f"all ids end in `.0`, as {rows[0].label}.0, and are read without it: {rows[0].label}.")


def alike_sites(sites: Sequence[str]) -> Iterator[Finding]:
    """A note on sites whose names differ in case, blanks and punctuation alone."""
    spelled: dict[str, list[str]] = {}
    for site in sites:
        spelled.setdefault("".join(filter(str.isalnum, site.casefold())) or site, []).append(site)
    for group in spelled.values():
        numbers = not any(map(str.isalpha, "".join(group)))
        if len(group) > 1 and not numbers:
            yield note(
                f"sites {', '.join(map(repr, group))} differ in spelling alone and count as {len(group)}; if they are "
                f"one, give each the same name under `codes.site`, as `{group[1]}: {group[0]}`.",
            )


def remarks(participants: Mapping[str, Participant], settings: CohortSettings) -> Iterator[Finding]:
    """Notes on unknown values, classes and sites; a cohort of one class stops the run."""
    if not participants:
        return
    words = class_words(settings.target, settings.classes)
    for field in ("diagnosis", "age", *(("sex",) if settings.target == "diagnosis" else ())):
        values = {subject: getattr(person, field) for subject, person in participants.items()}
        without = tuple(subject for subject, value in values.items() if value is None or value != value)
        if without and field == "diagnosis":
            yield _unlabelled(without, len(participants), settings)
        elif without:
            yield note(f"{len(without)} of {len(participants)} subjects have no {field}: {named(without)}.", without)
    labels: dict[str, list[int]] = {person.site: [] for person in participants.values()}
    for person in participants.values():
        labels[person.site] += [] if person.diagnosis is None else [person.diagnosis]
    classes = {label for of_site in labels.values() for label in of_site}
    if len(classes) == 1:
        sentence = (
            f"{settings.tables[0]}: expected {words.listed}, found {words.many[min(classes)]} only; "
            f"fix codes.{settings.target} or the table."
        )
        yield Finding("stops", "", sentence)
    for site, of_site in sorted(labels.items()) if len(classes) != 1 else ():
        if len(set(of_site)) == 1:
            who = f"all {len(of_site)} subjects are" if len(of_site) > 1 else "its only subject is one of the"
            yield note(
                f"site {site}: {who} {words.many[of_site[0]]}, so its AUC is "
                "undefined; put it into a group with another site, or leave it.",
            )
    if unknown := sorted(set(settings.tr) - labels.keys()):
        yield note(f"tr: the cohort has no site {', '.join(unknown)}; fix the name, or remove it.")


def _unlabelled(without: Sequence[str], total: int, settings: CohortSettings) -> Finding:
    """Subjects without a label, which stay in unsupervised steps or leave."""
    known = f"{len(without)} of {total} subjects have no {settings.target}"
    if settings.unlabelled == "keep":
        return note(f"{known}: {named(without)}.", without)
    return Finding("drops", "", f"{known} and are left out (`unlabelled: drop`): {named(without)}.", tuple(without))


def check_files(name: str, listed: Sequence[ListedSubject], settings: CohortSettings) -> Iterator[Finding]:
    """Rows whose files are absent, not named, or another row's."""
    if not listed:
        return
    yield from _absent(name, listed, settings)
    for mistake in unusable_paths(name, settings.tables, settings, listed):
        yield found_at("", mistake)
    if unnamed := [row.subject for row in listed if row.absence == "no series"]:
        yield note(f"{len(unnamed)} of {len(listed)} rows name no file and are left out: {named(unnamed)}.", unnamed)
    owners: dict[str, list[str]] = {}
    for row in listed:
        if row.has_series:
            owners.setdefault(str(row.series), []).append(row.subject)
    for path, subjects in owners.items():
        if len(subjects) > 1:
            yield note(
                f"{path}: expected one subject, found {len(subjects)} ({named(subjects)}), which count as duplicates; "
                "fix columns.file or the pattern if they are several people.",
                subjects,
            )


def _absent(name: str, listed: Sequence[ListedSubject], settings: CohortSettings) -> Iterator[Finding]:
    """A cohort without any file, as the job refuses it; else every absent file, with the names of its subjects."""
    none_at_all = [*absent_files(name, listed, replace(settings, on_invalid="drop"))]
    if none_at_all:
        yield from (found_at("", mistake) for mistake in none_at_all)
        return
    wanted = [row for row in listed if row.absence != EXCLUDED and row.series is not None]
    for kind in ("series", "confounds"):
        without = [row for row in listed if row.absence == f"{kind} file absent"]
        if not without:
            continue
        files, subjects = [getattr(row, kind) for row in without], tuple(row.subject for row in without)
        remedy = ("" if settings.fetch else "bring the files, ") + remedy_for(settings, kind)
        folders = [file for file in files if Path(file).is_dir()]
        entry = f"a folder at {folders[0]}" if folders else none_but(str(files[0]))
        sentence = (
            f"Cohort {name!r}: expected the {kind} file {files[0]} of subject {subjects[0]}, found "
            f"{entry} ({len(without)} of {len(wanted)} are absent: {named(subjects)}); {remedy}, "
            f"or {'set `on_invalid: drop`' if settings.on_invalid == 'error' else 'take the rows out of the table'}."
        )
        yield Finding(severity_of(settings), "", sentence, subjects)


def check_orphans(name: str, listed: Sequence[ListedSubject], settings: CohortSettings) -> Iterator[Finding]:
    """Files that the pattern finds and no row names; `listed` are all rows."""
    pattern = str(settings.series)
    below = files_below(pattern)
    orphans = unlisted_files(pattern, named_series(name, listed, settings, below), below)
    if orphans:
        yield note(
            f"{settings.series}: {len(orphans)} files belong to no row of the table, the first is {orphans[0]}; add "
            "rows, or fix the ids if they should be found.",
        )


def _left_out(listing: Listing, settings: CohortSettings) -> Iterator[Finding]:
    """Rows without files to use, by reason, and files without a row."""
    total, wanted = len(listing.subjects), wanted_files(settings) if settings.source == "bids" else {}
    for reason in sorted(set(listing.absences.values()) - {EXCLUDED}):
        subjects = tuple(subject for subject, absence in listing.absences.items() if absence == reason)
        if reason in NAMED_NONE:
            yield note(f"{len(subjects)} of {total} rows are left out ({reason}): {named(subjects)}.", subjects)
            continue
        dropping = settings.on_invalid == "drop"
        pattern = f", {wanted[reason][1]} in {settings.bids.derivatives}" if reason in wanted else ""
        remedy = "they are left out" if dropping else "bring the files, or leave them out with on_invalid: drop"
        sentence = f"{len(subjects)} of {total} subjects: {reason}{pattern} ({named(subjects)}); {remedy}."
        yield Finding(severity_of(settings), "", sentence, subjects)
    if more := len(listing.unlisted):
        strangers = "1 subject with files has" if more == 1 else f"{more} subjects with files have"
        yield note(
            f"{strangers} no row in the table, the first is {listing.unlisted[0]}; add rows, or fix the ids if they "
            "should be found."
        )


def check_dates(name: str, settings: CohortSettings) -> Iterator[Finding]:
    """Tables and files that are dated after now, as by a scanner's or a server's clock."""
    try:
        listing = list_cohort(name, settings)
    except UserError:
        return
    inputs = CohortInputs(name, settings, listing)
    files = [*settings.tables, *filter(None, atlas_files(settings)), *inputs.graph_files()]
    for listed in listing.subjects:
        runs = [path for run in listed.runs for path in (run.image, run.confounds, run.mask, *run.sidecars)]
        files += filter(None, (listed.series, listed.confounds, *runs))
    if settings.kind == "morphometry" or further_measures(settings):
        files += inputs.stats_files()
    if said := dated_ahead(dict.fromkeys(files)):
        yield note(f"{said[0].upper()}{said[1:]}")


def check_others(name: str, settings: CohortSettings, cohorts: Collection[str]) -> Iterator[Finding]:
    """Files that lie where the run writes another of its `cohorts`; those in its own results are found with it."""
    try:
        listing = list_cohort(name, replace(settings, on_invalid="drop"))
    except UserError:
        return
    wrong = unusable_paths(name, listing.tables, settings, listing.subjects, cohorts)
    yield from (found_at("", error) for error in wrong)
