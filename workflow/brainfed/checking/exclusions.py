"""Subjects that the rules of exclusion will leave out, as far as tables and headers show."""

from collections.abc import Iterator, Mapping, Sequence

from brainfed.checking.finding import Finding, boundary, found_at
from brainfed.checking.people import Look, Person
from brainfed.cohort.quality.exclusion import RULES, active_rules, exclusion_kind
from brainfed.cohort.quality.inclusion import reason_to_leave
from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.runtime.errors import UserError

UNKNOWN = {rule.measure: float("nan") for rule in RULES.values()}


def exclude_known(
    place: str,
    people: Sequence[Person],
    looks: Mapping[str, Look],
    mean_fd: Mapping[str, float],
    settings: CohortSettings,
) -> tuple[tuple[Person, ...], list[Finding], dict[str, str]]:
    """The people who stay, one finding a rule for the others, and the reason for each of these.

    Args:
        place: heading of the findings.
        people: all who take part otherwise.
        looks: at their files, by subject; a person without one is judged by mean FD alone.
        mean_fd: mean framewise displacement by subject, mm, NaN where no table has it.
        settings: the cohort's settings.
    """
    reasons: dict[str, str] = {}
    findings: list[Finding] = []
    for one in people:
        reasons[one.subject] = ""
        mistakes: list[UserError] = []
        with boundary(f"Subject {one.subject}", mistakes.append):
            reasons[one.subject] = reason_to_leave(_known(one, looks, mean_fd, settings), settings)
        findings += [found_at(place, error, subjects=(one.subject,)) for error in mistakes]
    stay = tuple(one for one in people if not reasons[one.subject])
    findings += _by_rule(place, reasons, len(people))
    if people and not stay:
        sentence = (
            f"Cohort: expected a subject that the rules under `exclude` keep, found none among {len(people)}; "
            "loosen the rules."
        )
        findings.append(Finding("stops", place, sentence))
    headers_alone = any(look.silent_regions is None for look in looks.values())
    if headers_alone and active_rules(settings.exclude).keys() - {"mean_fd", "min_volumes", "min_kept_seconds"}:
        sentence = "exclude: rules of coverage, signal and tSNR need the scans themselves and were not judged here."
        findings.append(Finding("notes", place, sentence))
    return stay, findings, {subject: reason for subject, reason in reasons.items() if reason}


def _known(
    person: Person, looks: Mapping[str, Look], mean_fd: Mapping[str, float], settings: CohortSettings
) -> dict[str, object]:
    """The measures that the run will decide by, as far as they are known."""
    look = looks.get(person.subject)
    known: dict[str, object] = {"mean_fd": mean_fd.get(person.subject, float("nan"))}
    if look is not None and person.timepoints:
        tr = settings.tr.get(person.site, look.tr)
        known |= {"timepoints": person.timepoints, "kept_seconds": person.timepoints * tr}
    silent = None if look is None else look.silent_regions
    if look is not None and silent is not None:
        barely = silent if settings.min_coverage > 0 else 0
        known |= {"silent_regions": silent, "barely_seen_regions": barely, "coverage": 1 - silent / look.regions}
    return {
        "subject": person.subject,
        "absence": "",
        "problem": "",
        "labelled": person.diagnosis is not None,
        "constant_regions": silent or 0,
        "empty_regions": 0,
        **UNKNOWN,
        **known,
    }


def _by_rule(place: str, reasons: Mapping[str, str], total: int) -> Iterator[Finding]:
    for kind in dict.fromkeys(exclusion_kind(reason) for reason in reasons.values() if reason):
        subjects = tuple(one for one, reason in reasons.items() if reason and exclusion_kind(reason) == kind)
        first, rule = subjects[0], "exclude" if kind else "constant_regions"
        sentence = (
            f"{len(subjects)} of {total} subjects are left out by `{rule}`, the first is {first}: {reasons[first]}."
        )
        yield Finding("drops", place, sentence, subjects)
