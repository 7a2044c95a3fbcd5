"""Participants, as far as tables and headers show, for the checks of splits and disk."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from brainfed.checking.finding import Finding
from brainfed.cohort.phenotype.participant import Participant


@dataclass(frozen=True)
class Person:
    """One subject whose data can be used.

    Attributes:
        diagnosis: 1 patient, 0 control, None unknown.
        twin: the same for subjects with the same data.
        timepoints: length of the series, 0 where it is not known.
    """

    subject: str
    site: str
    diagnosis: int | None
    twin: str
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
        twin: the same for files with the same content.
        tr: repetition time in s, NaN where it is not known.
        header_tr: that of the image header if a sidecar contradicts it, else NaN.
        cosines: whether cosines, which are a high-pass, are among its confounds.
        measures: those of the run that the exclusions know, by name; None where the header alone was read.
        voxels: of all volumes of an image; 0: no image.
    """

    timepoints: int
    twin: str
    tr: float = float("nan")
    measures: Mapping[str, float] | None = None
    voxels: int = 0
    header_tr: float = float("nan")
    cosines: bool = False


def people_of(participants: Mapping[str, Participant], looks: Mapping[str, Look]) -> tuple[Person, ...]:
    """Those whose files were looked at, in ascending order of id."""
    return tuple(
        Person(subject, participants[subject].site, participants[subject].diagnosis, look.twin, look.timepoints)
        for subject, look in sorted(looks.items())
    )


def leavers_among(
    everybody: Mapping[str, tuple[str, int | None]], people: Sequence[Person], reasons: Mapping[str, str]
) -> tuple[Leaver, ...]:
    """Those of the table (subject -> site and label) who have a label and do not take part."""
    stay = {person.subject for person in people}
    return tuple(
        Leaver(subject, site, label, reasons.get(subject, ""))
        for subject, (site, label) in everybody.items()
        if label is not None and subject not in stay
    )


def nobody_left(name: str, place: str, dropped: Collection[str]) -> list[Finding]:
    """What stops a run of a cohort without a usable subject, if files that cannot be used are the reason."""
    sentence = (
        f"Cohort {name!r}: expected a usable subject, found that `on_invalid: drop` leaves out all {len(dropped)}; "
        "fix the files, or the settings that they are checked against."
    )
    return [Finding("stops", place, sentence)] if dropped else []


def twins_among(place: str, people: Sequence[Person]) -> list[Finding]:
    """One finding for every group of subjects with the same data."""
    groups: dict[str, list[str]] = {}
    labels = {person.subject: person.diagnosis for person in people}
    for person in people:
        groups.setdefault(person.twin, []).append(person.subject)
    return [
        Finding(
            "notes",
            place,
            f"Subjects {', '.join(group)}: expected data of their own, found the same in "
            f"all{_contradiction(group, labels)}; they will share an institution and a fold; remove all but one if "
            "they are one person, or fix a file that was copied.",
            tuple(group),
        )
        for group in groups.values()
        if len(group) > 1
    ]


def _contradiction(subjects: Sequence[str], labels: Mapping[str, int | None]) -> str:
    """Words on subjects with one scan and several diagnoses."""
    several = len({labels[subject] for subject in subjects} - {None}) > 1
    return ", with different diagnoses: at least one file or row is wrong" if several else ""
