"""The answer in words: one line with the estimate and its interval, and the numbers behind it.

No sentence depends on a limit for p. A difference has its interval, and the words follow from the position of the
interval. The p values are in the tables of the tests.
"""

from brainfed.reporting.intervals import Interval
from brainfed.reporting.rounding import EXACT, rounded, signed
from brainfed.reporting.text.answer import (
    ALONE,
    NO_IMAGING,
    POOLED,
    REFERENCE,
    TWIN_ALONE,
    TWIN_POOLED,
    Answer,
    Comparison,
)


def verdict(answer: Answer) -> str:
    """The answer in one line: the federated estimate, then its difference from learning alone and from pooled data."""
    if answer.chosen is None or answer.score is None:
        if not answer.candidates:
            return "No federated method was run"
        ran = f"all {answer.candidates} federated methods" if answer.candidates > 1 else "the federated method"
        return f"The AUC of {ran} is undefined in every institution"
    title = answer.chosen.title
    leading = f"{title}, the best of {answer.candidates} federated methods," if answer.candidates > 1 else title
    reached = f"{leading} reaches an AUC of {answer.score}"
    compared = [_first(answer, TWIN_ALONE, ALONE), _first(answer, TWIN_POOLED, POOLED)]
    beside = [
        f"{found.difference.as_difference()} beside {_name(role, found, answer)}"
        for found, role in filter(None, compared)
    ]
    if not beside and answer.comparisons:
        first = answer.comparisons[0]
        beside = [f"{first.difference.as_difference()} beside {first.other.title}"]
    few = f" ({answer.score.counted}, too few for an interval)" if answer.score.few else ""
    return f"{reached}: {', '.join(beside)}{few}" if beside else f"{reached}{few}; it has nothing to be compared with"


def _first(answer: Answer, *roles: str) -> tuple[Comparison, str] | None:
    """The first role with a comparison."""
    return next(((found, role) for role in roles if (found := answer.against(role)) is not None), None)


def _name(role: str, comparison: Comparison, answer: Answer) -> str:
    """Name of a variant in `role`."""
    assert answer.chosen is not None
    title, others = comparison.other.title, answer.unseen
    if role == TWIN_ALONE and (words := answer.chosen.twin("alone").other_model):
        return f"{title} {'of the other sites, averaged' if others else 'alone'}, {words}"
    if role == TWIN_POOLED and (words := answer.chosen.twin("pooled").other_model):
        return f"{title} on pooled data, {words}"
    return {
        TWIN_ALONE: "the same model of the other sites, averaged" if others else "the same model alone",
        ALONE: "the strongest of the other sites\u2019 own models, averaged" if others else "the strongest model alone",
        TWIN_POOLED: "the same model on pooled data",
        POOLED: "the strongest model on pooled data",
    }[role]


def graded(found: Interval) -> str:
    """The range of an interval in words: `between a loss of 0.06 and a gain of 0.09`; graded by its position."""
    low, high = (float(rounded(abs(value), found.digits)) for value in (found.low, found.high))
    losing, gaining = found.low < 0 and low > 0, found.high > 0 and high > 0
    down, up = rounded(abs(found.low), found.digits), rounded(abs(found.high), found.digits)
    if not losing and not gaining:
        return f"no difference above {10.0**-found.digits:g}"
    if losing and gaining:
        return f"anything between a loss of {down} and a gain of {up}"
    if gaining:
        return f"a gain of {down} to {up}" if low > 0 else f"anything between no difference and a gain of {up}"
    return f"a loss of {up} to {down}" if high > 0 else f"anything between a loss of {down} and no difference"


def sentences(answer: Answer, unread: str = "imaging") -> list[str]:
    """The numbers behind the verdict, a sentence for each comparison, in plain text.

    Args:
        answer: of an experiment.
        unread: what baselines do not read, as `ClassWords.unread`.
    """
    if answer.chosen is None or answer.score is None:
        if not answer.candidates:
            return ["No federated method was run in this experiment, so it gives no answer about federation."]
        return [
            "The test subjects of an institution lack a class in every run, and without it an AUC has no value. "
            "The accuracy of every method stands under Results."
        ]
    said = [_reaches(comparison, answer, unread) + _difference(comparison) for comparison in answer.comparisons]
    twins = {"local": answer.chosen.twin("alone"), "pooled": answer.chosen.twin("pooled")}
    missing = {word: twin.missing for word, twin in twins.items() if twin.missing}
    if missing:
        reasons = list(missing.values())
        if any("{" in reason for reason in reasons):
            reasons = ["the variants to add stand under Results, What federation changes"]
        both = [reason.removeprefix("add ") if number else reason for number, reason in enumerate(reasons)]
        joined = " and ".join(both) if all(reason.startswith("add ") for reason in reasons) else "; ".join(reasons)
        said.append(f"{answer.chosen.title} has no {' or '.join(missing)} twin in this experiment: {joined}.")
    return [*said, *dict.fromkeys(sentence for twin in twins.values() for sentence in twin.differs)]


def _reaches(comparison: Comparison, answer: Answer, unread: str) -> str:
    title, score, roles = comparison.other.title, comparison.score.text, comparison.roles
    if NO_IMAGING in roles:
        return f"Without {unread}, {title} reaches {score}"
    if roles == (REFERENCE,):
        return f"{title} reaches {score}"
    named = " and ".join(_name(role, comparison, answer) for role in roles)
    return f"{named if named.startswith(title) else f'{title}, {named}'}, reaches {score}"


def _difference(comparison: Comparison) -> str:
    found = comparison.difference
    if found.few or not found.known:
        return f": the federated method differs by {found.as_difference()}; {found.counted}, too few for an interval."
    if found.constant:
        mean = signed(found.mean, found.digits)
        zero = not round(found.mean, EXACT)
        said = "there is no difference in any" if zero else f"the federated method differs by {mean} in every one"
        return f": {said} of {found.counted}."
    return f": the federated method differs by {found.as_difference()}; the data allow {graded(found)}."
