"""A method beside those that its paper compares it with, and beside the best method of the experiment.

The families declare which methods these are (`methods.papers.beside`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from brainfed.reporting.intervals import Interval, best, values
from brainfed.reporting.page_tests import PageTests
from brainfed.reporting.text.answer import METRIC
from brainfed.reporting.variants import ShownVariant


@dataclass(frozen=True)
class BaselineComparison:
    """The method minus one baseline, paired by run.

    Attributes:
        variant: the baseline.
        score: its mean AUC.
        difference: mean difference with its corrected interval.
    """

    variant: ShownVariant
    score: Interval
    difference: Interval


@dataclass(frozen=True)
class MethodBeside:
    """A method and its baselines.

    Attributes:
        variant: the method.
        score: its mean AUC.
        baselines: in the order of `ShownVariant.beside`; at least one.
        leader: the variant with the highest mean AUC of the whole experiment.
        leader_score: that mean.
    """

    variant: ShownVariant
    score: Interval
    baselines: tuple[BaselineComparison, ...]
    leader: ShownVariant
    leader_score: Interval


def find_beside(tests: PageTests) -> list[MethodBeside]:
    """Compare every method that declares baselines with those of the experiment; none without a baseline."""
    scored = tests.scored
    shown = {variant.name: variant for variant in tests.variants if len(values(scored.runs, variant.name, METRIC))}
    methods = [name for name, variant in shown.items() if not variant.is_control and not variant.is_poisoned]
    found = []
    for variant in shown.values():
        present = [name for name in variant.beside if name in shown]
        if not present:
            continue
        leader = best(scored.runs, methods, METRIC) or variant.name
        compared = tuple(
            BaselineComparison(
                shown[name], scored.interval(name, METRIC), scored.difference(variant.name, name, METRIC)
            )
            for name in present
        )
        score, highest = (scored.interval(name, METRIC) for name in (variant.name, leader))
        found.append(MethodBeside(variant, score, compared, shown[leader], highest))
    return found


def beside_sentence(result: MethodBeside) -> str:
    """The method's own score, its difference from every baseline, and which method has the highest score."""
    parts = [f"{one.difference.as_difference()} from {one.variant.title}" for one in result.baselines]
    own = f"{result.variant.title}, with an AUC of {result.score.in_words()}, differs by {listed(parts, 'and')}."
    if result.leader == result.variant:
        return f"{own} It has the highest AUC of all methods."
    return f"{own} {result.leader.title} has the highest AUC of all methods, {result.leader_score.text}."


def listed(items: Sequence[str], word: str) -> str:
    """`a, b and c`."""
    return f" {word} ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)
