"""Who the rules of exclusion will leave out, as far as tables and headers tell."""

from collections.abc import Iterator, Mapping, Sequence

from brainfed.checking.finding import Finding
from brainfed.checking.people import Look, Person
from brainfed.cohort.exclusion import RULES, asked, exclusion, exclusion_kind
from brainfed.cohort.exclusion_settings import ExclusionSettings

UNKNOWN = {rule.measure: float("nan") for rule in RULES.values()}


def exclude_known(
    place: str,
    people: Sequence[Person],
    looks: Mapping[str, Look],
    mean_fd: Mapping[str, float],
    settings: ExclusionSettings,
) -> tuple[tuple[Person, ...], list[Finding]]:
    """Those who stay, and one finding a rule for those who do not; who has no look is not judged by volumes.

    Args:
        place: heading of the findings.
        people: who takes part otherwise.
        looks: what the heads of their files say, by subject.
        mean_fd: mean framewise displacement by subject, mm, NaN where no table tells it.
        settings: the limits.
    """
    reasons = {one.subject: exclusion(_measures(one, looks, mean_fd), settings) for one in people}
    stay = tuple(one for one in people if not reasons[one.subject])
    findings = list(_by_rule(place, reasons, len(people)))
    if people and not stay:
        sentence = (
            f"Cohort: expected a subject that the rules under `exclude` leave in, found none among {len(people)}; "
            "loosen the rules."
        )
        findings.append(Finding("stops", place, sentence))
    if asked(settings).keys() - {"mean_fd", "min_volumes", "min_kept_seconds"}:
        sentence = "exclude: rules of coverage, signal and tSNR need the scans themselves and were not judged here."
        findings.append(Finding("notes", place, sentence))
    return stay, findings


def _measures(person: Person, looks: Mapping[str, Look], mean_fd: Mapping[str, float]) -> dict[str, float]:
    known = UNKNOWN | {"mean_fd": mean_fd.get(person.subject, float("nan"))}
    if person.subject in looks and person.timepoints:
        known |= {"timepoints": person.timepoints, "kept_seconds": person.timepoints * looks[person.subject].tr}
    return known


def _by_rule(place: str, reasons: Mapping[str, str], total: int) -> Iterator[Finding]:
    for kind in dict.fromkeys(exclusion_kind(reason) for reason in reasons.values() if reason):
        subjects = tuple(subject for subject, reason in reasons.items() if exclusion_kind(reason) == kind)
        first = subjects[0]
        sentence = (
            f"{len(subjects)} of {total} subjects are left out by `exclude`, the first is {first}: {reasons[first]}."
        )
        yield Finding("drops", place, sentence, subjects)
