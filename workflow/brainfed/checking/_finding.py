"""Mistakes of a project before it runs: one finding a mistake, those of a kind reported together."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal, ParamSpec

from brainfed.cohort.settings import CohortSettings
from brainfed.runtime import Refuse, UserError

Given = ParamSpec("Given")
Severity = Literal["stops", "drops", "notes"]

WORDS: dict[Severity, str] = {"stops": "stops the run", "drops": "drops a subject", "notes": "worth knowing"}
SHOWN = 8
FOUND = re.compile(r"\bfound ('[^']*')")
"""The content of a cell, as sentences quote it."""


@dataclass(frozen=True)
class Finding:
    """One sentence about one place: what, where, expected against found, what to do; the subjects, if any."""

    severity: Severity
    place: str
    sentence: str
    subjects: tuple[str, ...] = ()


def note(sentence: str, subjects: Sequence[str] = ()) -> Finding:
    """What is worth knowing; `collected` gives its place."""
    return Finding("notes", "", sentence, tuple(subjects))


class UnexpectedError(UserError):
    """The failure of a library or of the system in one sentence: no setting lets a job go on after it."""


@contextmanager
def boundary(where: str, refuse: Refuse) -> Iterator[None]:
    """Give what fails inside to `refuse`, as one sentence, and go on behind it; interrupts pass.

    Everything that a check reads is read in here, by the function of the job that will read it. `where` begins the
    sentence on an unexpected failure: what is read.
    """
    try:
        yield
    except UserError as error:
        refuse(error)
    except Exception as error:
        refuse(UnexpectedError(_unexpected(where, error)))


def attempt(where: str, refuse: Refuse, *checks: Callable[[], object]) -> None:
    """Run every check, also after one that fails; their failures go to `refuse` as of `boundary`."""
    for check in checks:
        with boundary(where, refuse):
            check()


def found_at(place: str, error: UserError, severity: Severity = "stops", subjects: tuple[str, ...] = ()) -> Finding:
    """The finding of a mistake; an unexpected failure always stops the run."""
    return Finding("stops" if isinstance(error, UnexpectedError) else severity, place, str(error), subjects)


@contextmanager
def failures(place: str, findings: list[Finding], where: str = "") -> Iterator[None]:
    """Add the finding of what fails inside; `where` as of `boundary`, by default the place."""
    with boundary(where or place, lambda error: findings.append(found_at(place, error))):
        yield


def collected(
    place: str, check: Callable[Given, Iterable[Finding]], *given: Given.args, **named: Given.kwargs
) -> list[Finding]:
    """All findings of a check, at this place unless they have their own, and one more if it fails on the way."""
    findings: list[Finding] = []
    with failures(place, findings):
        findings.extend(replace(finding, place=finding.place or place) for finding in check(*given, **named))
    return findings


def refusals(place: str, job: Callable[Given, object], *given: Given.args, **named: Given.kwargs) -> list[Finding]:
    """The finding of a job's function that refuses what it is given; none where it takes it."""
    findings: list[Finding] = []
    with failures(place, findings):
        job(*given, **named)
    return findings


def place_of(cohort: str, part: str) -> str:
    """The heading of findings on one part of a cohort."""
    return f"cohort {cohort}: {part}"


def severity_of(settings: CohortSettings) -> Severity:
    """What a mistake of one subject's files does."""
    return "stops" if settings.on_invalid == "error" else "drops"


def gathered(findings: Iterable[Finding]) -> list[Finding]:
    """Place by place, one finding for all that differ only in subject or row: the first names the others."""
    kinds: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        kinds.setdefault((finding.place, finding.severity, _kind(finding.sentence)), []).append(finding)
    places = list(dict.fromkeys(place for place, *_ in kinds))
    return [_together(alike) for place in places for (own, *_), alike in kinds.items() if own == place]


def as_text(findings: Sequence[Finding]) -> str:
    """A numbered list under headings, and a last line with counts."""
    lines: list[str] = []
    place = ""
    for number, finding in enumerate(findings, start=1):
        if finding.place != place:
            lines += ["", finding.place]
            place = finding.place
        lines.append(f"{number:3}. {WORDS[finding.severity]}: {finding.sentence}")
    stops, notes = (sum(finding.severity == severity for finding in findings) for severity in ("stops", "notes"))
    dropped = len({subject for finding in findings if finding.severity == "drops" for subject in finding.subjects})
    leave = "1 subject leaves" if dropped == 1 else f"{dropped} subjects leave"
    lines += ["", f"{stops} stop{'s' if stops == 1 else ''} the run, {leave}, {notes} worth knowing"]
    return "\n".join(lines).lstrip("\n")


def named(subjects: Sequence[str]) -> str:
    """The first few of some names, and how many there are besides."""
    more = len(subjects) - SHOWN
    return ", ".join(subjects[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _unexpected(where: str, error: Exception) -> str:
    """One sentence on a failure that no reader of ours has a sentence for."""
    message = " ".join(str(error.strerror if isinstance(error, OSError) and error.strerror else error).split())
    cause = f"{type(error).__name__}: {message}" if message else type(error).__name__
    file = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
    return (
        f"{where}: {file}expected a file that can be read, found one that its reader fails on ({cause}); check the "
        "file and its permissions, and report the error if they are right."
    )


def _kind(sentence: str) -> str:
    """Expectation and remedy of a sentence, without the names and numbers of one case."""
    _, expected, rest = sentence.partition("expected")
    return re.sub(r"'[^']*'|\S*[\d/]\S*", "#", rest if expected else sentence)


def _with_others(sentence: str, sentences: Sequence[str]) -> str:
    """A sentence that also names the other values found: one code or number may not hide the others."""
    values = list(dict.fromkeys(hit.group(1) for hit in map(FOUND.search, sentences) if hit))
    if len(values) < 2:
        return sentence
    return FOUND.sub(lambda hit: f"{hit.group()} (also {named(values[1:])})", sentence, count=1)


def _together(alike: Sequence[Finding]) -> Finding:
    first = alike[0]
    if len(alike) == 1:
        return first
    subjects = tuple(dict.fromkeys(subject for finding in alike for subject in finding.subjects))
    others = [subject for subject in subjects if subject not in first.subjects]
    sentence = _with_others(first.sentence, [finding.sentence for finding in alike])
    times = "once" if len(alike) == 2 else f"{len(alike) - 1} times"
    more = f"in {named(others)}" if others else f"{times} more"
    return replace(first, sentence=f"{sentence} The same {more}.", subjects=subjects)
