"""The first screen: the question in the words of the cohort, its answer in one sentence, and how sure it is."""

from dataclasses import dataclass

from brainfed.cohort.class_words import ClassWords
from brainfed.reporting.intervals import Interval
from brainfed.reporting.rounding import EXACT, signed
from brainfed.reporting.text.answer import ALONE, POOLED, SIDES, TWIN_ALONE, TWIN_POOLED, Answer, Comparison
from brainfed.reporting.text.answer_words import graded
from brainfed.reporting.text.tested_people import TestedPeople
from brainfed.reporting.variants import ShownVariant

NUMERALS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
DATA = {"connectivity": "brain scans", "morphometry": "measures of brain anatomy", "graphs": "graphs"}
"""Kind of a cohort -> what its institutions hold."""


@dataclass(frozen=True)
class FirstScreen:
    """What a reader sees before any detail.

    Attributes:
        question: what the experiment asks.
        answer: AUCs of the best federated method, of the same model on pooled data, and alone.
        sure: what was tested, and what the data cannot rule out, a sentence each.
    """

    question: str
    answer: str
    sure: tuple[str, ...]


def first_screen(
    answer: Answer, words: ClassWords, kind: str, institutions: int, tested: TestedPeople
) -> FirstScreen | None:
    """The first screen of an experiment; None without a federated method that has an AUC.

    Args:
        answer: its methods.
        words: nouns of the cohort.
        kind: `connectivity`, `morphometry` or `graphs`.
        institutions: their number in a repeat.
        tested: numbers of tested subjects.
    """
    if answer.chosen is None or answer.score is None:
        return None
    alone = _first(answer, TWIN_ALONE, ALONE)
    pooled = _first(answer, TWIN_POOLED, POOLED)
    return FirstScreen(
        question(words, kind, institutions, unseen=answer.unseen),
        _answer(answer, pooled, alone),
        tuple(_sure(answer, pooled, alone, tested)),
    )


def question(words: ClassWords, kind: str, institutions: int, *, unseen: bool) -> str:
    """What an experiment asks: `Can five institutions predict autism from brain scans without sharing them?`."""
    count = NUMERALS[institutions] if institutions < len(NUMERALS) else str(institutions)
    asked = f"{_predicted(words)} from {words.modality or DATA[kind]}"
    if unseen:
        return f"Can models of other {words.site}s {asked} at a {words.site} that took no part?"
    return f"Can {count} {'data sets' if words.site == 'data set' else 'institutions'} {asked} without sharing them?"


def _predicted(words: ClassWords) -> str:
    """`predict autism`; `predict the diagnosis (CN, MCI or AD)` of classes with names."""
    if words.count == 2 and words.one[1] in ("patient", "male"):
        return f"predict {words.condition or ('a diagnosis' if words.target == 'diagnosis' else words.target)}"
    *first, last = (words.short[code] for code in words.shown)
    condition = f" of {words.condition}" if words.condition else ""
    return f"predict the {words.target}{condition} ({', '.join(first)} or {last})"


def _first(answer: Answer, *roles: str) -> Comparison | None:
    """The comparison with the first of these roles that has one."""
    return next((found for role in roles if (found := answer.against(role)) is not None), None)


def _answer(answer: Answer, pooled: Comparison | None, alone: Comparison | None) -> str:
    """One sentence of three AUCs."""
    assert answer.chosen is not None and answer.score is not None
    others = "from the other sites\u2019 own models" if answer.unseen else "alone"
    compared = ((pooled, "pooled", "on pooled data"), (alone, "alone", others))
    parts: list[str] = []
    named = ""
    for found, side, where in compared:
        if found is not None:
            name = _model(found, answer.chosen, side)
            parts.append(f"{'' if name == named else f'{name} reaches '}{_shown(found.score)} {where}")
            named = name
    said = f"{answer.chosen.title} reaches an AUC of {_shown(answer.score)} together"
    return f"{said}; {' and '.join(parts)}." if parts else f"{said}."


def _model(found: Comparison, chosen: ShownVariant, side: str) -> str:
    """The same model; the title of another one where the method has no such twin."""
    same = SIDES[side] in found.roles and not chosen.twin(side).other_model
    return "the same model" if same else found.other.title


def _shown(score: Interval) -> str:
    """`0.78 [0.75, 0.81]`; the mean alone where the runs show no interval."""
    return score.text if score.constant else str(score)


def _sure(answer: Answer, pooled: Comparison | None, alone: Comparison | None, tested: TestedPeople) -> list[str]:
    said = [tested.sentence]
    said += [
        f"Together minus {beside}: {_range(found.difference)}."
        for found, beside in ((pooled, "pooled"), (alone, "alone"))
        if found is not None
    ]
    if answer.candidates > 1:
        assert answer.chosen is not None
        said.append(
            f"{answer.chosen.title} has the highest AUC of {answer.candidates} federated methods, and this choice "
            "favours it a little."
        )
    return said


def _range(found: Interval) -> str:
    """What the data allow."""
    if found.few or not found.known:
        return f"{signed(found.mean, found.digits)}; {found.counted}, too few for an interval"
    if found.constant:
        zero = not round(found.mean, EXACT)
        return f"{'no difference' if zero else signed(found.mean, found.digits)} in every one of {found.counted}"
    return f"{signed(found.mean, found.digits)}; the data allow {graded(found)}"
