"""Who takes part in a cohort, as far as tables, headers and scans show, and who leaves it and why."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, nan

from brainfed.checking._finding import Finding, boundary, collected, found_at, named, note, severity_of
from brainfed.cohort.quality import RULES, active_rules, exclusion_kind, reason_to_leave
from brainfed.cohort.settings import CohortSettings
from brainfed.cohort.sources import EXCLUDED, Absence, ListedSubject
from brainfed.runtime import Refuse, UserError

NAMED_NONE: tuple[Absence, ...] = ("no series", "no FreeSurfer id")
"""Reasons that leave out one subject and do not stop the run."""
REMEDIES = {"mean_fd": "name its column under `columns.mean_fd`", "kept_seconds": "set `tr`"}
"""Measure that tables and headers show -> how to make it known."""


@dataclass(frozen=True)
class Person:
    """One subject whose data can be used; of its files as `Look`. `diagnosis`: 1 patient, 0 control, None unknown."""

    subject: str
    site: str
    diagnosis: int | None
    content: str
    timepoints: int


@dataclass(frozen=True)
class Leaver:
    """One subject with a label that will take no part, and the reason."""

    subject: str
    site: str
    diagnosis: int
    reason: str


@dataclass(frozen=True)
class Checked:
    """The result of checking a cohort.

    Attributes:
        findings: all of them, not yet gathered.
        people: participants once mistakes that stop the run are fixed; none where rows of the table cannot be used.
        sites: of everybody in the table.
        regions: of the parcellation, 0 where it is not known.
        leavers: those with a label who do not take part.
    """

    findings: tuple[Finding, ...]
    people: tuple[Person, ...]
    sites: tuple[str, ...]
    regions: int
    leavers: tuple[Leaver, ...] = ()


@dataclass(frozen=True)
class Look:
    """Properties of one subject's file.

    Attributes:
        timepoints: length of the series, 0 where it is not known.
        content: stands for what is in the file; equal for duplicates.
        tr: repetition time in s, NaN where it is not known.
        header_tr: that of the image header if a sidecar contradicts it, else NaN.
        cosines: whether cosines, which are a high-pass, are among its confounds.
        measures: those of the run that the exclusions know, by name; None where the header alone was read.
        voxels: of all volumes of an image; 0: no image.
    """

    timepoints: int
    content: str
    tr: float = nan
    measures: Mapping[str, float] | None = None
    voxels: int = 0
    header_tr: float = nan
    cosines: bool = False


@dataclass(frozen=True)
class Table:
    """What the tables of a cohort say, and the files that they name.

    Attributes:
        listed: the subjects of the rows that can be used.
        rows: subject -> site and label (None unknown).
        mean_fd: subject -> mean framewise displacement in mm, NaN where no table has it.
        findings: on the tables, and on absent files and files without a row.
        complete: whether all rows can be used.
        dropped: subjects who leave because their files are absent.
    """

    listed: tuple[ListedSubject, ...]
    rows: Mapping[str, tuple[str, int | None]]
    mean_fd: Mapping[str, float]
    findings: tuple[Finding, ...]
    complete: bool = True
    dropped: frozenset[str] = frozenset()


@dataclass
class Content:
    """What the files of the subjects hold: the looks at those without mistakes, the mistakes of the others, notes."""

    looks: dict[str, Look] = field(default_factory=dict)
    wrong: list[tuple[str, UserError]] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)


def look_at_all(everybody: Iterable[ListedSubject], look: Callable[[ListedSubject, Refuse], Look | None]) -> Content:
    """The looks at subjects without mistakes, and the mistakes of the others.

    `look` reads one subject's files and refuses their mistakes; it returns None where they cannot be read.
    """
    content = Content()
    for listed in (each for each in everybody if each.has_series):
        wrong: list[UserError] = []
        seen = None
        with boundary(f"Subject {listed.subject}, {listed.series}", wrong.append):
            seen = look(listed, wrong.append)
        content.wrong += [(listed.subject, error) for error in wrong]
        if seen is not None and not wrong:
            content.looks[listed.subject] = seen
    return content


def concluded(
    name: str, settings: CohortSettings, place: str, table: Table, content: Content, regions: int = 0
) -> Checked:
    """The people of a cohort once the mistakes that stop the run are fixed, with all findings.

    `place` is the heading of findings on the `content` of files, `regions` the number of regions (0: not known).
    """
    fixed = {row.subject: Look(0, row.subject) for row in table.listed if row.absence not in (*NAMED_NONE, EXCLUDED)}
    known = fixed | content.looks if settings.on_invalid == "error" else content.looks
    everybody = [
        Person(subject, *table.rows[subject], known[subject].content, known[subject].timepoints)
        for subject in sorted(known)
    ]
    people = tuple(person for person in everybody if settings.unlabelled == "keep" or person.diagnosis is not None)
    findings = [*table.findings]
    findings += [found_at(place, error, severity_of(settings), (subject,)) for subject, error in content.wrong]
    dropped = {subject for subject, _ in content.wrong} | table.dropped
    if sentence := _nobody_left(settings.target, len(everybody), len(people), len(dropped)):
        findings.append(Finding("stops", place, f"Cohort {name!r}: {sentence}"))
    findings += [*content.notes, *collected(place, _duplicates_among, people)]
    stay, excluded, reasons = _exclude_known(place, people, content.looks, table.mean_fd, settings)
    reasons |= {subject: str(error) for subject, error in reversed(content.wrong)}
    reasons |= {row.subject: row.absence for row in table.listed if row.absence}
    staying = {person.subject for person in stay}
    leavers = tuple(
        Leaver(subject, site, label, reasons.get(subject, ""))
        for subject, (site, label) in table.rows.items()
        if label is not None and subject not in staying
    )
    sites = tuple(sorted({site for site, _ in table.rows.values()}))
    return Checked((*findings, *excluded), stay if table.complete else (), sites, regions, leavers)


def silent_regions(looks: Mapping[str, Look], regions: int, settings: CohortSettings) -> Iterator[Finding]:
    """A note on subjects whose regions without a signal are set to 0."""
    silent = {subject: int((look.measures or {}).get("silent_regions", 0)) for subject, look in looks.items()}
    subjects = tuple(sorted(subject for subject, count in silent.items() if count))
    if subjects and settings.constant_regions == "impute_zero":
        yield note(
            f"{len(subjects)} subjects have regions without a signal, constant or missing throughout, up to "
            f"{max(silent.values())} of {regions}: {named(subjects)}; their correlations are set to 0 "
            "(`constant_regions`).",
            subjects,
        )


def _nobody_left(target: str, everybody: int, people: int, dropped: int) -> str:
    """What stops a run of a cohort without a usable subject; empty where there is one."""
    if dropped and not everybody:
        return (
            f"expected a usable subject, found that `on_invalid: drop` leaves out all {dropped}; fix the files, or the "
            "settings that they are checked against."
        )
    if everybody and not people:
        return (
            f"expected a subject whose {target} is known, found none among {everybody}; fix columns.{target}, its "
            "codes or the table."
        )
    return ""


def _duplicates_among(people: Sequence[Person]) -> Iterator[Finding]:
    """One finding for every group of subjects with the same data."""
    groups: dict[str, list[Person]] = {}
    for person in people:
        groups.setdefault(person.content, []).append(person)
    for group in (members for members in groups.values() if len(members) > 1):
        several = len({person.diagnosis for person in group} - {None}) > 1
        contradiction = ", with different diagnoses: at least one file or row is wrong" if several else ""
        subjects = [person.subject for person in group]
        yield note(
            f"Subjects {', '.join(subjects)}: expected data of their own, found the same in all{contradiction}; they "
            "will share an institution and a fold; remove all but one if they are one person, or fix a file that was "
            "copied.",
            subjects,
        )


def _exclude_known(
    place: str,
    people: Sequence[Person],
    looks: Mapping[str, Look],
    mean_fd: Mapping[str, float],
    settings: CohortSettings,
) -> tuple[tuple[Person, ...], list[Finding], dict[str, str]]:
    """The people whom the rules of exclusion keep, one finding a rule for the others, and the reason for each of these.

    A person without a look is judged by mean FD alone.
    """
    reasons: dict[str, str] = {}
    findings: list[Finding] = []
    measured = {person.subject: _known(person, looks, mean_fd, settings) for person in people}
    for subject, row in measured.items():
        reasons[subject] = ""
        mistakes: list[UserError] = []
        with boundary(f"Subject {subject}", mistakes.append):
            reasons[subject] = reason_to_leave(row, settings)
        findings += [found_at(place, error, subjects=(subject,)) for error in mistakes]
    left = {subject: reason for subject, reason in reasons.items() if reason}
    of_kind: dict[str, list[str]] = {}
    for subject, reason in left.items():
        of_kind.setdefault(exclusion_kind(reason), []).append(subject)
    for kind, subjects in of_kind.items():
        sentence = (
            f"{len(subjects)} of {len(people)} subjects are left out by `{'exclude' if kind else 'constant_regions'}`, "
            f"the first is {subjects[0]}: {left[subjects[0]]}."
        )
        findings.append(Finding("drops", place, sentence, tuple(subjects)))
    findings += collected(place, _without_measure, measured, looks, settings)
    stay = tuple(person for person in people if person.subject not in left)
    if people and not stay:
        sentence = (
            f"Cohort: expected a subject that the rules under `exclude` keep, found none among {len(people)}; "
            "loosen the rules."
        )
        findings.append(Finding("stops", place, sentence))
    return stay, findings, left


def _known(
    person: Person, looks: Mapping[str, Look], mean_fd: Mapping[str, float], settings: CohortSettings
) -> dict[str, object]:
    """The measures that the run will decide by, as far as they are known."""
    look = looks.get(person.subject)
    known: dict[str, float] = {}
    if look is not None and person.timepoints:
        tr = settings.tr.get(person.site, look.tr)
        known = {"timepoints": person.timepoints, "kept_seconds": person.timepoints * tr, **(look.measures or {})}
    motion = mean_fd.get(person.subject, nan)
    known["mean_fd"] = known.get("mean_fd", motion) if isnan(motion) else motion
    return {
        "subject": person.subject,
        "absence": "",
        "problem": "",
        "labelled": person.diagnosis is not None,
        "constant_regions": known.get("silent_regions", 0),
        "empty_regions": 0,
        **dict.fromkeys((rule.measure for rule in RULES.values()), nan),
        **known,
    }


def _without_measure(
    measured: Mapping[str, Mapping[str, object]], looks: Mapping[str, Look], settings: CohortSettings
) -> Iterator[Finding]:
    """Limits on what nobody has, which exclude nobody; tables and headers do not show what is measured in a scan."""
    read = [row for subject, row in measured.items() if subject in looks and looks[subject].measures]
    for name, rule in active_rules(settings.exclude).items():
        shown = rule.measure in REMEDIES
        of_rule = list(measured.values()) if shown or settings.source == "freesurfer" else read
        if of_rule and all(isnan(float(str(row[rule.measure]))) for row in of_rule):
            remedy = f"{REMEDIES[rule.measure]}, or take the limit out" if shown else "take the limit out"
            yield note(
                f"`exclude.{name}` has nothing to judge by and excludes nobody: expected a subject with a known "
                f"{rule.words}, found none among {len(of_rule)}; {remedy}."
            )
