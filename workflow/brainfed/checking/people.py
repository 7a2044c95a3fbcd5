"""Who takes part, as far as tables and headers tell: what the split and the disk need to know."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from brainfed.checking.finding import Finding
from brainfed.cohort.participant import Participant


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
class Checked:
    """What was seen of a cohort.

    Attributes:
        findings: all of them, not yet gathered.
        people: who takes part once what stops the run is mended; nobody where rows of the table cannot be used.
        sites: of everybody in the table.
        regions: of the parcellation, 0 where it is not known.
    """

    findings: tuple[Finding, ...]
    people: tuple[Person, ...]
    sites: tuple[str, ...]
    regions: int


@dataclass(frozen=True)
class Look:
    """What the head of one subject's file says; `twin` is the same for files with the same content, `tr` in s."""

    timepoints: int
    twin: str
    tr: float = float("nan")


def people_of(participants: Mapping[str, Participant], looks: Mapping[str, Look]) -> tuple[Person, ...]:
    """Those whose files were looked at, in ascending order of id."""
    return tuple(
        Person(subject, participants[subject].site, participants[subject].diagnosis, look.twin, look.timepoints)
        for subject, look in sorted(looks.items())
    )


def twins_among(place: str, people: Sequence[Person]) -> list[Finding]:
    """One finding for every group of subjects with the same data."""
    groups: dict[str, list[str]] = {}
    for person in people:
        groups.setdefault(person.twin, []).append(person.subject)
    return [
        Finding(
            "notes",
            place,
            f"Subjects {', '.join(group)}: expected data of their own, found the same in all; they will share an "
            "institution and a fold; remove all but one if they are one person, or mend a file that was copied.",
            tuple(group),
        )
        for group in groups.values()
        if len(group) > 1
    ]
