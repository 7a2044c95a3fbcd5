"""Recovered share of a completed graph at each dose of a simulation: numbers and a sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from brainfed.evaluation.recovered import RecoveredShare, recovered_share
from brainfed.evaluation.scores import INSTITUTION
from brainfed.reporting.intervals import Interval
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.rounding import rounded
from brainfed.reporting.scored import Scored
from brainfed.reporting.variants import ShownVariant

LOWER, UPPER = "fedgcn", "centralgcn"
"""Methods at the ends of the gap: the cut graph without new nodes, and pooled data."""
METRIC = "accuracy"
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
    found = completing(variants)
    least = min(map(cap_of, found), default=np.inf)
    parts = [[one for one in found if (cap_of(one) == least) == smallest] for smallest in (True, False)]
    return [part for part in parts if part]


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
    return (
        f"{variant.method_title} (another classifier)" if variant.method in OTHER_CLASSIFIER else variant.method_title
    )


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
    return f"at most {limits} new nodes a subject" + (
        " (other methods: their own number)" if caps[-1] == np.inf else ""
    )


def _percent(share: RecoveredShare) -> str:
    mean, low, high = (rounded(100 * value, 0) for value in (share.share, share.low, share.high))
    return f"{mean}\u00a0%\u00a0[{low},\u00a0{high}]"
