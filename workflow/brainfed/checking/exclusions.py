"""Subjects that the rules of exclusion will leave out, as far as tables and headers show."""

from collections.abc import Iterator, Mapping, Sequence
from math import isnan

from brainfed.checking.finding import Finding, boundary, found_at, named
from brainfed.checking.people import Look, Person
from brainfed.cohort.quality.exclusion import RULES, active_rules, exclusion_kind
from brainfed.cohort.quality.inclusion import reason_to_leave
from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.runtime.errors import UserError

REMEDIES = {"mean_fd": "name its column under `columns.mean_fd`", "kept_seconds": "set `tr`"}
"""Measure that tables and headers show -> how to make it known."""
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
    measured = {one.subject: _known(one, looks, mean_fd, settings) for one in people}
    for one in people:
        reasons[one.subject] = ""
        mistakes: list[UserError] = []
        with boundary(f"Subject {one.subject}", mistakes.append):
            reasons[one.subject] = reason_to_leave(measured[one.subject], settings)
        findings += [found_at(place, error, subjects=(one.subject,)) for error in mistakes]
    stay = tuple(one for one in people if not reasons[one.subject])
    findings += _by_rule(place, reasons, len(people))
    findings += _without_measure(place, measured, looks, settings)
    if people and not stay:
        sentence = (
            f"Cohort: expected a subject that the rules under `exclude` keep, found none among {len(people)}; "
            "loosen the rules."
        )
        findings.append(Finding("stops", place, sentence))
    return stay, findings, {subject: reason for subject, reason in reasons.items() if reason}


def _known(
    person: Person, looks: Mapping[str, Look], mean_fd: Mapping[str, float], settings: CohortSettings
) -> dict[str, object]:
    """The measures that the run will decide by, as far as they are known."""
    look = looks.get(person.subject)
    known: dict[str, float] = {}
    if look is not None and person.timepoints:
        tr = settings.tr.get(person.site, look.tr)
        known = {"timepoints": person.timepoints, "kept_seconds": person.timepoints * tr, **(look.measures or {})}
    motion = mean_fd.get(person.subject, float("nan"))
    known["mean_fd"] = known.get("mean_fd", motion) if isnan(motion) else motion
    return {
        "subject": person.subject,
        "absence": "",
        "problem": "",
        "labelled": person.diagnosis is not None,
        "constant_regions": known.get("silent_regions", 0),
        "empty_regions": 0,
        **UNKNOWN,
        **known,
    }


def _without_measure(
    place: str, measured: Mapping[str, Mapping[str, object]], looks: Mapping[str, Look], settings: CohortSettings
) -> Iterator[Finding]:
    """Limits on what nobody has, which exclude nobody; tables and headers do not show what is measured in a scan."""
    for name, rule in active_rules(settings.exclude).items():
        shown = rule.measure in REMEDIES
        unread = not shown and settings.source != "freesurfer"
        of_rule = [row for one, row in measured.items() if not unread or (one in looks and looks[one].measures)]
        if of_rule and all(isnan(float(str(row[rule.measure]))) for row in of_rule):
            remedy = f"{REMEDIES[rule.measure]}, or take the limit out" if shown else "take the limit out"
            yield Finding(
                "notes",
                place,
                f"`exclude.{name}` has nothing to judge by and excludes nobody: expected a subject with a known "
                f"{rule.words}, found none among {len(of_rule)}; {remedy}.",
            )


def silent_regions(looks: Mapping[str, Look], regions: int, settings: CohortSettings, place: str) -> Iterator[Finding]:
    """A note on subjects whose regions without a signal are set to 0."""
    silent = {subject: int((look.measures or {}).get("silent_regions", 0)) for subject, look in looks.items()}
    subjects = tuple(sorted(subject for subject, count in silent.items() if count))
    if subjects and settings.constant_regions == "impute_zero":
        sentence = (
            f"{len(subjects)} subjects have regions without a signal, constant or missing throughout, up to "
            f"{max(silent.values())} of {regions}: {named(subjects)}; their correlations are set to 0 "
            "(`constant_regions`)."
        )
        yield Finding("notes", place, sentence, subjects)


def _by_rule(place: str, reasons: Mapping[str, str], total: int) -> Iterator[Finding]:
    for kind in dict.fromkeys(exclusion_kind(reason) for reason in reasons.values() if reason):
        subjects = tuple(one for one, reason in reasons.items() if reason and exclusion_kind(reason) == kind)
        first, rule = subjects[0], "exclude" if kind else "constant_regions"
        sentence = (
            f"{len(subjects)} of {total} subjects are left out by `{rule}`, the first is {first}: {reasons[first]}."
        )
        yield Finding("drops", place, sentence, subjects)
