"""The phenotype table: every row that cannot be used, unknown values, and classes by site."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from brainfed.checking.finding import Finding, boundary, found_at, named
from brainfed.cohort.class_words import ClassWords, class_words
from brainfed.cohort.phenotype.participant import ONE_SITE, Participant, read_participant
from brainfed.cohort.phenotype.table import Row, cohort_rows
from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.sources.below import files_below
from brainfed.cohort.sources.listed import ListedSubject
from brainfed.cohort.sources.listing import list_subject
from brainfed.runtime.errors import Refuse, UserError, pass_over


@dataclass(frozen=True)
class Roster:
    """The rows that can be used; `complete` if all can."""

    listed: tuple[ListedSubject, ...]
    participants: Mapping[str, Participant]
    complete: bool


def read_roster(name: str, settings: CohortSettings, place: str) -> tuple[Roster, list[Finding]]:
    """Read the whole table of a cohort; rows that no job could read become findings."""
    findings: list[Finding] = []

    def refuse(error: UserError, *subjects: str) -> None:
        findings.append(found_at(place, error, subjects=subjects))

    listed: list[ListedSubject] = []
    participants: dict[str, Participant] = {}
    below: Mapping[str, Sequence[str]] = {}
    with boundary(f"Cohort {name!r}, {settings.series}", refuse):
        below = files_below(str(settings.series))
    for row in _rows(settings, refuse):
        mistakes: list[UserError] = []
        with boundary(f"{row.table}, line {row.line}", mistakes.append):
            participants[row.subject] = read_participant(
                row.table, row, settings.columns, settings.codes, settings.target, settings.classes
            )
            listed.append(list_subject(name, row, settings, below))
        for error in mistakes:
            refuse(error, row.subject)
    return Roster(tuple(listed), participants, not findings), findings


def _rows(settings: CohortSettings, refuse: Refuse) -> list[Row]:
    with boundary(", ".join(settings.tables), refuse):
        return cohort_rows(settings.tables, settings, refuse)
    return []


def reading_remarks(tables: Sequence[str], settings: CohortSettings, place: str) -> Iterator[Finding]:
    """Notes on cells that do not mean what they spell: codes read as missing, ids read without `.0`."""
    rows = cohort_rows(tables, settings, pass_over)
    usual = {"n/a", *settings.missing}
    codes = sorted({code for row in rows for code in row.absent.values()} - usual)
    if codes:
        columns = dict.fromkeys(name for row in rows for name, code in row.absent.items() if code in codes)
        concerned = tuple(row.subject for row in rows if not usual.issuperset(row.absent.values()))
        yield Finding(
            "notes",
            place,
            f"{', '.join(map(repr, codes))} in {', '.join(columns)} read as missing, as n/a is, in {len(concerned)} of "
            f"{len(rows)} rows: {named(concerned)}; name such a code under `codes` if it is a value.",
            concerned,
        )
    if settings.columns.site is None and rows:
        sentence = f"columns.site is none: all {len(rows)} subjects come from one site, called {ONE_SITE}."
        yield Finding("notes", place, sentence)
    names = settings.columns.ids
    if rows and all(f"{row.label}.0" in map(row.cells.get, names) for row in rows):
        yield Finding(
            "notes", place, f"all ids end in `.0`, as {rows[0].label}.0, and are read without it: {rows[0].label}."
        )


def alike_sites(sites: Sequence[str], place: str) -> Iterator[Finding]:
    """A note on sites whose names differ in case, blanks and punctuation alone."""
    spelled: dict[str, list[str]] = {}
    for site in sites:
        spelled.setdefault("".join(filter(str.isalnum, site.casefold())) or site, []).append(site)
    for group in spelled.values():
        if len(group) > 1 and not all(map(_is_number, group)):
            yield Finding(
                "notes",
                place,
                f"sites {', '.join(map(repr, group))} differ in spelling alone and count as {len(group)}; if they are "
                f"one, give each the same name under `codes.site`, as `{group[1]}: {group[0]}`.",
            )


def _is_number(text: str) -> bool:
    return not any(map(str.isalpha, text))


def remarks(participants: Mapping[str, Participant], settings: CohortSettings, place: str) -> Iterator[Finding]:
    """Notes on unknown values, classes and sites; a cohort of one class stops the run."""
    if not participants:
        return
    words = class_words(settings.target, settings.classes)
    for field in ("diagnosis", "age", *(("sex",) if settings.target == "diagnosis" else ())):
        without = tuple(subject for subject, person in participants.items() if _unknown(getattr(person, field)))
        if without:
            if field == "diagnosis":
                yield unlabelled(without, len(participants), settings, place)
                continue
            sentence = f"{len(without)} of {len(participants)} subjects have no {field}: {named(without)}."
            yield Finding("notes", place, sentence, without)
    classes = {person.diagnosis for person in participants.values()} - {None}
    if len(classes) == 1:
        yield Finding(
            "stops",
            place,
            f"{settings.tables[0]}: expected {words.listed}, found {_class(classes, words)} only; "
            f"fix codes.{settings.target} or the table.",
        )
    else:
        yield from _one_class_sites(participants, words, place)
    unknown = sorted(set(settings.tr) - {person.site for person in participants.values()})
    if unknown:
        yield Finding("notes", place, f"tr: the cohort has no site {', '.join(unknown)}; fix the name, or remove it.")


def unlabelled(without: Sequence[str], total: int, settings: CohortSettings, place: str) -> Finding:
    """Subjects without a label, which stay in unsupervised steps or leave."""
    known = f"{len(without)} of {total} subjects have no {settings.target}"
    if settings.unlabelled == "keep":
        return Finding("notes", place, f"{known}: {named(without)}.", tuple(without))
    return Finding("drops", place, f"{known} and are left out (`unlabelled: drop`): {named(without)}.", tuple(without))


def _one_class_sites(participants: Mapping[str, Participant], words: ClassWords, place: str) -> Iterator[Finding]:
    for site in sorted({person.site for person in participants.values()}):
        labelled = [p.diagnosis for p in participants.values() if p.site == site and p.diagnosis is not None]
        if len(set(labelled)) == 1:
            who = f"all {len(labelled)} subjects are" if len(labelled) > 1 else "its only subject is one of the"
            yield Finding(
                "notes",
                place,
                f"site {site}: {who} {_class(set(labelled), words)}, so its AUC is "
                "undefined; put it into a group with another site, or leave it.",
            )


def _class(classes: set[int | None], words: ClassWords) -> str:
    """The only class of a set."""
    return " and ".join(words.many[code] for code in classes if code is not None)


def _unknown(value: object) -> bool:
    return value is None or value != value
