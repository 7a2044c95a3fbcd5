"""The answer of an experiment: its best federated method against the same model without federation and the best.

The federated method is chosen by its score, so its own number is slightly optimistic. It is compared with its own
counterparts (the same model alone and on pooled data) and with the strongest variant of every other kind. A claimed
gain over local training must hold against all local models.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from brainfed.evaluation import INSTITUTION, corrected_t_test, institutions_unseen
from brainfed.reporting import Interval, PageTests, Scored, ShownVariant, best, counted, rounded, signed

METRIC = "auc"
SAME_ALONE, SAME_POOLED = "same model alone", "same model, pooled data"
ALONE, POOLED, NO_IMAGING, REFERENCE = "alone", "pooled data", "no imaging", "reference"
SIDES = {"alone": SAME_ALONE, "pooled": SAME_POOLED}
"""Side of a counterpart -> its role."""


@dataclass(frozen=True)
class Comparison:
    """A method minus another one, paired by run.

    Attributes:
        score: mean of the other variant.
        difference: mean difference with its corrected interval.
        roles: of the other variant in an answer: `SAME_ALONE`, `SAME_POOLED`; the strongest `ALONE`, on `POOLED` data,
            with `NO_IMAGING`; the config's `REFERENCE` if it is none of these.
    """

    other: ShownVariant
    score: Interval
    difference: Interval
    roles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """The best federated method of an experiment, and what it is compared with.

    Attributes:
        chosen: the federated variant with the highest mean AUC; None if none ran, or if none has an AUC.
        candidates: number of federated variants, without controls and poisoned ones.
        comparisons: with its counterparts, the strongest of every other kind and the config's reference, each once.
        unseen: whether every institution is tested by models that never saw it.
    """

    chosen: ShownVariant | None
    score: Interval | None
    candidates: int
    comparisons: tuple[Comparison, ...]
    unseen: bool

    def against(self, *roles: str) -> Comparison | None:
        """The comparison with the variant in the first of these roles that has one."""
        return next((comparison for role in roles for comparison in self.comparisons if role in comparison.roles), None)

    @property
    def alone(self) -> Comparison | None:
        """The comparison with the same model alone, else with the strongest one."""
        return self.against(SAME_ALONE, ALONE)

    @property
    def pooled(self) -> Comparison | None:
        """The comparison with the same model on pooled data, else with the strongest one."""
        return self.against(SAME_POOLED, POOLED)


def find_answer(tests: PageTests) -> Answer:
    """Choose and compare: the runs, variants and reference of the experiment."""
    scored, variants = tests.scored, tests.variants
    federated = [variant.name for variant in variants if variant.family == "federated" and not variant.is_measure]
    name = best(scored.runs, federated, METRIC)
    unseen = institutions_unseen(scored.runs)
    if name is None:
        return Answer(None, None, len(federated), (), unseen)
    shown = {variant.name: variant for variant in variants}
    imaging = [variant for variant in variants if variant.family != "baseline"]
    others = {role: [shown[name].counterpart(side).name] for side, role in SIDES.items()} | {
        ALONE: [variant.name for variant in imaging if variant.trains_alone],
        POOLED: [variant.name for variant in imaging if variant.pools],
        NO_IMAGING: [variant.name for variant in variants if variant.family == "baseline"],
        REFERENCE: [tests.reference],
    }
    roles: dict[str, tuple[str, ...]] = {}
    for role, names in others.items():
        other = best(scored.runs, names, METRIC)
        if other in shown and other != name and not (role == REFERENCE and other in roles):
            roles[str(other)] = (*roles.get(str(other), ()), role)
    comparisons = tuple(_comparison(scored, name, shown[other], own_roles) for other, own_roles in roles.items())
    return Answer(shown[name], scored.interval(name, METRIC), len(federated), comparisons, unseen)


def _comparison(scored: Scored, name: str, other: ShownVariant, roles: tuple[str, ...] = ()) -> Comparison:
    score, difference = scored.interval(other.name, METRIC), scored.difference(name, other.name, METRIC)
    return Comparison(other, score, difference, roles)


# The answer in words: one line with the estimate and its interval, and the numbers behind it.
#
# No sentence depends on a limit for p. A difference has its interval, and the words follow from the position of the
# interval. The p values are in the tables of the tests.


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
    beside = []
    for roles in ((SAME_ALONE, ALONE), (SAME_POOLED, POOLED)):
        if (comparison := answer.against(*roles)) is not None:
            role = next(role for role in roles if role in comparison.roles)
            beside.append(f"{comparison.difference.as_difference()} beside {_name(role, comparison, answer)}")
    if not beside and answer.comparisons:
        first = answer.comparisons[0]
        beside = [f"{first.difference.as_difference()} beside {first.other.title}"]
    few = f" ({answer.score.counted}, too few for an interval)" if answer.score.few else ""
    return f"{reached}: {', '.join(beside)}{few}" if beside else f"{reached}{few}; it has nothing to be compared with"


def _name(role: str, comparison: Comparison, answer: Answer) -> str:
    """Name of a variant in `role`."""
    assert answer.chosen is not None
    title, others = comparison.other.title, answer.unseen
    if role == SAME_ALONE and (words := answer.chosen.counterpart("alone").other_model):
        return f"{title} {'of the other sites, averaged' if others else 'alone'}, {words}"
    if role == SAME_POOLED and (words := answer.chosen.counterpart("pooled").other_model):
        return f"{title} on pooled data, {words}"
    return {
        SAME_ALONE: "the same model of the other sites, averaged" if others else "the same model alone",
        ALONE: "the strongest of the other sites\u2019 own models, averaged" if others else "the strongest model alone",
        SAME_POOLED: "the same model on pooled data",
        POOLED: "the strongest model on pooled data",
    }[role]


def graded(interval: Interval) -> str:
    """The range of an interval in words: `between a loss of 0.06 and a gain of 0.09`; graded by its position."""
    low, high = (float(rounded(abs(value), interval.digits)) for value in (interval.low, interval.high))
    losing, gaining = interval.low < 0 and low > 0, interval.high > 0 and high > 0
    down, up = rounded(abs(interval.low), interval.digits), rounded(abs(interval.high), interval.digits)
    if not losing and not gaining:
        return f"no difference above {10.0**-interval.digits:g}"
    if losing and gaining:
        return f"anything between a loss of {down} and a gain of {up}"
    if gaining:
        return f"a gain of {down} to {up}" if low > 0 else f"anything between no difference and a gain of {up}"
    return f"a loss of {up} to {down}" if high > 0 else f"anything between a loss of {down} and no difference"


def sentences(answer: Answer, unread: str = "imaging") -> list[str]:
    """The numbers behind the verdict, a sentence for each comparison; `unread`: what baselines do not read."""
    if answer.chosen is None or answer.score is None:
        if not answer.candidates:
            return ["No federated method was run in this experiment, so it gives no answer about federation."]
        return [
            "The test subjects of an institution lack a class in every run, and without it an AUC has no value. "
            "The accuracy of every method stands under Results."
        ]
    said = [_reaches(comparison, answer, unread) + _difference(comparison) for comparison in answer.comparisons]
    counterparts = {"local": answer.chosen.counterpart("alone"), "pooled": answer.chosen.counterpart("pooled")}
    missing = {word: side.missing for word, side in counterparts.items() if side.missing}
    if missing:
        reasons = list(missing.values())
        if any("{" in reason for reason in reasons):
            reasons = ["the variants to add stand under Results, What federation changes"]
        both = [reason.removeprefix("add ") if number else reason for number, reason in enumerate(reasons)]
        joined = " and ".join(both) if all(reason.startswith("add ") for reason in reasons) else "; ".join(reasons)
        said.append(f"{answer.chosen.title} has no {' or '.join(missing)} counterpart in this experiment: {joined}.")
    return [*said, *dict.fromkeys(sentence for side in counterparts.values() for sentence in side.differs)]


def _reaches(comparison: Comparison, answer: Answer, unread: str) -> str:
    title, score, roles = comparison.other.title, comparison.score.text, comparison.roles
    if NO_IMAGING in roles:
        return f"Without {unread}, {title} reaches {score}"
    if roles == (REFERENCE,):
        return f"{title} reaches {score}"
    named = " and ".join(_name(role, comparison, answer) for role in roles)
    return f"{named if named.startswith(title) else f'{title}, {named}'}, reaches {score}"


def _difference(comparison: Comparison) -> str:
    gap = comparison.difference
    if not gap.bounded:
        return f": the federated method differs by {gap.as_difference()}; {gap.counted}, too few for an interval."
    if gap.nothing:
        return f": there is no difference in any of {gap.counted}."
    if gap.constant:
        mean = signed(gap.mean, gap.digits)
        return f": the federated method differs by {mean} in every one of {gap.counted}."
    return f": the federated method differs by {gap.as_difference()}; the data allow {graded(gap)}."


# A method beside those that its paper compares it with, and beside the best method of the experiment.
#
# The families declare which methods these are (`papers._beside`).


@dataclass(frozen=True)
class MethodBeside:
    """A method with its mean AUC, and its baselines.

    Attributes:
        baselines: in the order of `ShownVariant.beside`; at least one.
        leader: the variant with the highest mean AUC of the whole experiment.
        leader_score: that mean.
    """

    variant: ShownVariant
    score: Interval
    baselines: tuple[Comparison, ...]
    leader: ShownVariant
    leader_score: Interval


def find_beside(tests: PageTests) -> list[MethodBeside]:
    """Compare every method that declares baselines with those of the experiment; none without a baseline."""
    scored = tests.scored
    shown = {variant.name: variant for variant in tests.variants if scored.has_values(variant.name, METRIC)}
    methods = [name for name, variant in shown.items() if not variant.is_measure]
    results = []
    for variant in shown.values():
        compared = tuple(_comparison(scored, variant.name, shown[name]) for name in variant.beside if name in shown)
        if compared:
            leader = best(scored.runs, methods, METRIC) or variant.name
            score, highest = (scored.interval(name, METRIC) for name in (variant.name, leader))
            results.append(MethodBeside(variant, score, compared, shown[leader], highest))
    return results


def beside_sentence(result: MethodBeside) -> str:
    """The method's own score, its difference from every baseline, and which method has the highest score."""
    parts = [f"{each.difference.as_difference()} from {each.other.title}" for each in result.baselines]
    own = f"{result.variant.title}, with an AUC of {result.score.in_words()}, differs by {listed(parts)}."
    if result.leader == result.variant:
        return f"{own} It has the highest AUC of all methods."
    return f"{own} {result.leader.title} has the highest AUC of all methods, {result.leader_score.text}."


def listed(items: Sequence[str], word: str = "and") -> str:
    """`a, b and c`."""
    return f" {word} ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)


# Null control: with shuffled diagnoses a method without leakage has an AUC of 0.5.

CHANCE = 0.5
ENOUGH = 20
"""Smallest number of permutations for a test of their mean; every repeat is one."""


def permutation_means(runs: pd.DataFrame, variants: Sequence[ShownVariant]) -> pd.DataFrame:
    """Mean AUC of every permutation (row: repeat) and variant (column); variants with constant scores are left out."""
    chosen = runs[(runs["metric"] == METRIC) & (runs["scope"] == INSTITUTION)]
    means = chosen.pivot_table(index="repeat", columns="variant", values="value", aggfunc="mean")
    varying = chosen.groupby("variant")["value"].nunique() > 1
    return means[[variant.name for variant in variants if varying.get(variant.name, False)]]


def null_verdict(means: pd.DataFrame) -> str:
    """The control in one line."""
    scores = means.mean()
    if scores.empty:
        return "Null control, labels shuffled: no method gives different scores"
    return (
        f"Null control, labels shuffled: mean AUC from {rounded(scores.min())} to {rounded(scores.max())} "
        f"({counted(len(scores), 'method')}), where chance is {CHANCE}"
    )


def null_sentences(means: pd.DataFrame) -> list[str]:
    """Number of methods with 0.5 in their interval over permutations, and whether that is a test."""
    count = len(means)
    if count < 2:
        return [f"This is one permutation; at least {ENOUGH} repeats are needed to test that the mean is {CHANCE}."]
    tests = [corrected_t_test(means[name].dropna().to_numpy(), 0.0) for name in means]
    holding = sum(test.ci_low <= CHANCE <= test.ci_high for test in tests)
    said = f"The 95 % interval over {count} permutations holds {CHANCE} for {holding} of {len(tests)} methods"
    if count < ENOUGH:
        return [f"{said}. This is an illustration: at least {ENOUGH} permutations make a test."]
    return [f"{said}; by luck alone about one in twenty misses it."]


def in_front(answer: Answer) -> list[ShownVariant]:
    """The best federated method, and the strongest on pooled data and alone: coloured where all others are grey."""
    if answer.chosen is None:
        return []
    beside = (answer.against(role) for role in (POOLED, ALONE))
    return [answer.chosen, *(comparison.other for comparison in beside if comparison is not None)]


def strongest_by_place(runs: pd.DataFrame, variants: Sequence[ShownVariant]) -> list[ShownVariant]:
    """The federated, the pooled and the local variant with the highest mean AUC, without controls and poisoned ones."""
    strongest = []
    for place in ("federated", "central", "local"):
        there = [variant for variant in variants if variant.place == place and not variant.is_measure]
        name = best(runs, [variant.name for variant in there], "auc")
        strongest += [variant for variant in there if variant.name == name]
    return strongest
