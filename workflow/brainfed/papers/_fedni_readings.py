"""Readings of FedNI's open settings, and the recovered share of completed graphs at each dose."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from brainfed.evaluation import INSTITUTION, RecoveredShare, recovered_share
from brainfed.papers._fedni_numbers import (
    FEDNI_TABLE_V,
    PAPER_METRICS,
    PrintedCohort,
    as_in_the_paper,
    paper_cohort,
)
from brainfed.reporting import (
    ExperimentOutline,
    Interval,
    Scored,
    ShownVariant,
    changed_settings,
    rounded,
    setting_in_words,
    short,
)
from brainfed.reporting.text import listed
from brainfed.runtime import canonical_json

# Readings of FedNI's open settings, ordered by the distance of their accuracies to its Table V.
#
# A reading is a set of settings that differ from the shipped ones. A method uses those that it has:
# FedMLP keeps its score if a reading changes the graph alone.

Changed = Mapping[str, Any]
"""Setting, such as `graph.sigma` -> its value."""

METRIC = "accuracy"
SHIPPED = "as shipped"


@dataclass(frozen=True)
class Reading:
    """One row.

    Attributes:
        title: title of its variants.
        settings: differences from the shipped settings, in words.
        scores: method -> accuracy; a method without a variant of this reading has none.
        unread: methods that have none of the settings.
        distance: mean absolute distance of the accuracies to the printed ones, over the methods that every reading has.
        nearest: whether its distance is the smallest.
    """

    title: str
    settings: str
    scores: Mapping[str, Interval]
    unread: frozenset[str]
    distance: float
    nearest: bool = False


@dataclass(frozen=True)
class Readings:
    """All readings of an experiment, the nearest first.

    Attributes:
        titles: method -> its title, in the order of Table V.
        printed: method -> the accuracy in the paper.
        compared: methods that every reading has; the distances are over these.
        rows: in ascending order of the distance; the shipped one first in a tie.
        paper: the paper's cohort.
    """

    titles: Mapping[str, str]
    printed: Mapping[str, float]
    compared: tuple[str, ...]
    rows: tuple[Reading, ...]
    paper: PrintedCohort

    @property
    def finding(self) -> str:
        """The nearest reading, and the distances of this and others."""
        first, last = self.rows[0], self.rows[-1]
        methods = listed([self.titles[name] for name in self.compared], "and")
        whose = "" if self.paper.comparable else " on another cohort"
        nearest = f"{first.title}, mean distance {short(first.distance)}"
        said = [f"Nearest to the paper\u2019s accuracies{whose} of {methods}: {nearest}"]
        shipped = next((row for row in self.rows if not row.settings), first)
        if shipped is not first:
            said.append(f"{shipped.title} {short(shipped.distance)}")
        return "; ".join([*said, f"farthest: {last.title}, {short(last.distance)}"])

    @property
    def sentences(self) -> str:
        """The finding, and the uncertainty of the distances."""
        widths = [(score.high - score.low) / 2 for row in self.rows for score in row.scores.values() if score.known]
        if not widths:
            return f"{self.finding}."
        return (
            f"{self.finding}. A single accuracy here has a 95 % interval of about \u00b1 {short(median(widths))}. "
            "Distances are compared without a test: they describe what the paper may have done."
        )


def find_readings(outline: ExperimentOutline, scored: Scored) -> Readings | None:
    """The readings of an experiment; None if the evaluation is not the paper's, or with fewer than two readings."""
    paper = paper_cohort(outline.cohort)
    printed = FEDNI_TABLE_V[paper.column]
    shown = [variant for variant in outline.variants if variant.method in printed]
    if not as_in_the_paper(outline):
        return None
    distinct = _distinct(shown)
    methods = [name for name in printed if any(variant.method == name for variant in shown)]
    usual = {variant.method: variant.shipped for variant in shown}
    by_settings = {(variant.method, _key(changed_settings(variant))): variant for variant in shown}
    scores = [
        {
            method: scored.interval(variant.name, METRIC)
            for method in methods
            if (variant := by_settings.get((method, _key(_of_method(changed, usual[method]))))) is not None
        }
        for changed in distinct
    ]
    compared = tuple(method for method in methods if all(method in row for row in scores))
    if len(distinct) < 2 or not compared:
        return None
    accuracy = {method: printed[method][PAPER_METRICS.index(METRIC)][0] for method in methods}
    distances = [distance_to({name: row[name].mean for name in compared}, accuracy) for row in scores]
    rows = [
        Reading(
            _title(changed, shown),
            _in_words(changed),
            row,
            frozenset(method for method in methods if changed and not _of_method(changed, usual[method])),
            distance,
            distance == min(distances),
        )
        for changed, row, distance in zip(distinct, scores, distances, strict=True)
    ]
    titles = {variant.method: variant.method_title for variant in shown}
    order = sorted(rows, key=lambda row: (row.distance, bool(row.settings)))
    return Readings({name: titles[name] for name in methods}, accuracy, compared, tuple(order), paper)


def distance_to(scores: Mapping[str, float], printed: Mapping[str, float]) -> float:
    """Mean of |score - printed| over the methods of `scores`."""
    return float(np.mean([abs(score - printed[method]) for method, score in scores.items()]))


def _distinct(shown: Sequence[ShownVariant]) -> list[Changed]:
    """Every set of changed settings once, in the order of the variants; empty: as shipped.

    The part of a larger reading that applies to a method (FedMLP's features, of a reading of features and graph) is
    not a reading of its own.
    """
    holders: dict[str, list[ShownVariant]] = {}
    for variant in shown:
        holders.setdefault(_key(changed_settings(variant)), []).append(variant)
    changes = {key: changed_settings(variants[0]) for key, variants in holders.items()}

    def is_part(key: str) -> bool:
        return any(
            other != key and all(_key(_of_method(changes[other], variant.shipped)) == key for variant in holders[key])
            for other in changes
        )

    return [changed for key, changed in changes.items() if not changed or not is_part(key)]


def _of_method(changed: Changed, usual: Changed) -> dict[str, Any]:
    """The part of a reading that applies to a method with the settings `usual`."""
    return {key: value for key, value in changed.items() if key in usual}


def _key(changed: Changed) -> str:
    return canonical_json(dict(changed))


def _title(changed: Changed, shown: Sequence[ShownVariant]) -> str:
    """The title of the variant with most settings: one with fewer may have a part of a larger reading."""
    if not changed:
        return SHIPPED
    named = max((variant for variant in shown if changed_settings(variant) == changed), key=lambda v: len(v.shipped))
    return named.label or _in_words(changed)


def _in_words(changed: Changed) -> str:
    return ", ".join(setting_in_words(key.rpartition(".")[2], value) for key, value in sorted(changed.items()))


# Recovered share of a completed graph at each dose of a simulation: numbers and a sentence.

LOWER, UPPER = "fedgcn", "centralgcn"
"""Methods at the ends of the gap: the cut graph without new nodes, and pooled data."""
NODES = {
    "random": "random nodes",
    "mean": "institution means",
    "shuffled": "shuffled generated nodes",
    "true": "true missing neighbours (an oracle)",
}
"""Controls in words."""
OTHER_CLASSIFIER = ("fedsage-plus",)
"""Methods with another classifier than the lower end of the gap: their share is not due to their nodes alone."""


@dataclass(frozen=True)
class Dose:
    """One cohort of the figure.

    Attributes:
        value: the cohort's value of the swept setting.
        scores: variant -> accuracy.
        gap: accuracy on pooled data minus that on the cut graph.
        shares: variant that completes the graph -> its share of the gap; NaN if the gap is not certain.
    """

    value: float
    scores: Mapping[str, Interval]
    gap: Interval
    shares: Mapping[str, RecoveredShare]

    @property
    def certain(self) -> bool:
        """Whether the interval of the gap is above 0."""
        return self.gap.low > 0


def read_doses(axis: str, members: Sequence[ExperimentOutline], scored: Mapping[str, Scored]) -> list[Dose]:
    """The cohorts in ascending order of their dose.

    Args:
        axis: the swept setting, `simulate.group_agreement`.
        members: one experiment, a cohort each.
        scored: cohort -> its scores.
    """
    key = axis.rpartition(".")[2]
    doses = [_dose(float(member.simulate[key]), member, scored[member.cohort]) for member in members]
    return sorted(doses, key=lambda dose: dose.value)


def _dose(value: float, member: ExperimentOutline, scored: Scored) -> Dose:
    lower, upper = (of_method(member.variants, method).name for method in (LOWER, UPPER))
    chosen = (scored.runs["metric"] == METRIC) & (scored.runs["scope"] == INSTITUTION)
    runs = scored.runs.loc[chosen].pivot(index=["repeat", "fold"], columns="variant", values="value")
    shares = {}
    for variant in completing(member.variants):
        both = runs[[variant.name, lower, upper]].dropna().to_numpy(dtype=np.float64)
        shares[variant.name] = recovered_share(both[:, 0], both[:, 1], both[:, 2], scored.ratio)
    scores = {variant.name: scored.interval(variant.name, METRIC) for variant in member.variants}
    return Dose(value, scores, scored.difference(upper, lower, METRIC), shares)


def of_method(variants: Sequence[ShownVariant], method: str) -> ShownVariant:
    """The one variant of a method."""
    return next(variant for variant in variants if variant.method == method)


def completing(variants: Sequence[ShownVariant]) -> list[ShownVariant]:
    """The variants with new nodes for missing neighbours."""
    return [variant for variant in variants if variant.setting("fusing.nodes") is not None]


def by_cap(variants: Sequence[ShownVariant]) -> list[list[ShownVariant]]:
    """The variants that complete the graph: first those with the smallest limit of nodes, then the others, if any."""
    complete = completing(variants)
    least = min(map(cap_of, complete), default=np.inf)
    smallest = [variant for variant in complete if cap_of(variant) == least]
    larger = [variant for variant in complete if cap_of(variant) != least]
    return [part for part in (smallest, larger) if part]


def cap_of(variant: ShownVariant) -> float:
    """Limit of new nodes a subject; infinite without one."""
    cap = variant.setting("fusing.cap")
    return np.inf if cap is None else float(cap)


def node_words(variant: ShownVariant, beside: Sequence[ShownVariant]) -> str:
    """Name of the new nodes: the generator's title, or the control in words; the full title if ambiguous."""
    words = _words(variant)
    return variant.title if [_words(other) for other in beside].count(words) > 1 else words


def _words(variant: ShownVariant) -> str:
    nodes = str(variant.setting("fusing.nodes"))
    if nodes != "generated":
        return NODES.get(nodes, nodes)
    return variant.method_title + (" (another classifier)" if variant.method in OTHER_CLASSIFIER else "")


def dose_finding(axis_words: str, doses: Sequence[Dose], variants: Sequence[ShownVariant]) -> str:
    """The largest dose with pooled data significantly better than the cut, and the share that each kind recovers."""
    certain = [dose for dose in doses if dose.certain]
    if not certain:
        values = ", ".join(f"{dose.gap.as_difference()} at {dose.value:g}" for dose in doses)
        return (
            f"At no {axis_words} is pooled data surely better than the cut graph ({values}): nothing can be recovered"
        )
    last = certain[-1]
    shown = by_cap(variants)[-1]
    pooled, cut = (of_method(variants, method).title for method in (UPPER, LOWER))
    above = f"{pooled} on pooled data is {last.gap} of accuracy above {cut} on cut graphs"
    recovered = f"Recovered of that, with {limit_words(shown)}: {_recovered(last, shown)}"
    return f"At {axis_words} {last.value:g} {above}. {recovered}"


def _recovered(dose: Dose, shown: Sequence[ShownVariant]) -> str:
    """The variants that recover a share of the gap, may recover none, or lose; the largest share first."""
    known = [variant for variant in shown if np.isfinite(dose.shares[variant.name].share)]
    ordered = sorted(known, key=lambda variant: -dose.shares[variant.name].share)
    said = {node_words(variant, shown): dose.shares[variant.name] for variant in ordered}
    gaining = [f"by {words} {_percent(share)}" for words, share in said.items() if share.low > 0]
    nothing = [words for words, share in said.items() if share.low <= 0 <= share.high]
    losing = [words for words, share in said.items() if share.high < 0]
    parts = [", ".join(gaining)] if gaining else []
    if nothing:
        parts.append(f"nothing certain by {', '.join(nothing)}")
    if losing:
        parts.append(f"less than nothing by {', '.join(losing)}")
    return f"{'; '.join(parts)}. These intervals are not corrected for their number"


def limit_words(shown: Sequence[ShownVariant]) -> str:
    """`at most 4 new nodes a subject (other methods: their own number)`."""
    caps = sorted({cap_of(variant) for variant in shown})
    limits = ", ".join(f"{cap:g}" for cap in caps if np.isfinite(cap))
    if not limits:
        return "no limit to new nodes"
    others = " (other methods: their own number)" if caps[-1] == np.inf else ""
    return f"at most {limits} new nodes a subject{others}"


def _percent(share: RecoveredShare) -> str:
    mean, low, high = (rounded(100 * value, 0) for value in (share.share, share.low, share.high))
    return f"{mean}\u00a0%\u00a0[{low},\u00a0{high}]"
