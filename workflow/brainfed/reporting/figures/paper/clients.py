"""Scores against the number of institutions (FedNI Fig. 7)."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from brainfed.reporting.figures.paper.ablation import METRICS
from brainfed.reporting.figures.style import SERIES, WIDE, headed, key_below, new_figure, note_figure
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.scored import Scored


def clients_figure(members: Sequence[ExperimentOutline], scored: Mapping[str, Scored]) -> Figure:
    """A line a variant over the members' numbers of institutions.

    Args:
        members: experiments that differ in their number of institutions.
        scored: experiment -> its scores.
    """
    ordered = sorted(members, key=lambda member: int(member.split["count"]))
    counts = [int(member.split["count"]) for member in ordered]
    variants = list({variant.name: variant for member in ordered for variant in member.variants}.values())
    if not variants:
        return note_figure("no experiment belongs to this group")
    figure = new_figure(WIDE, 3.35 + 0.16 * (-(-len(variants) // 4)))
    for axes, (metric, title) in zip(figure.subplots(1, 2), METRICS, strict=True):
        for number, variant in enumerate(variants):
            colour, marker = SERIES[number % len(SERIES)]
            found = [
                (count, scored[member.name].interval(variant.name, metric))
                for count, member in zip(counts, ordered, strict=True)
                if any(other.name == variant.name for other in member.variants)
            ]
            x = np.array([count for count, _ in found]) + 0.09 * (number - (len(variants) - 1) / 2)
            reach = np.array([[score.mean - score.low, score.high - score.mean] for _, score in found]).T
            axes.errorbar(
                x, [score.mean for _, score in found], yerr=np.nan_to_num(reach), color=colour, marker=marker,
                markersize=5, elinewidth=1.1,
            )  # fmt: skip
        axes.set_xticks(counts)
        axes.set_xlabel("institutions that take part")
        axes.set_ylabel(f"{title} (mean over runs)")
        axes.grid(axis="y")
    headed(figure, _finding(ordered, counts, scored))
    key = [
        Line2D([], [], color=colour, marker=marker, markersize=5, label=variant.title)
        for variant, (colour, marker) in zip(variants, SERIES * len(variants), strict=False)
    ]
    key_below(figure, key, columns=4)
    return figure


def _finding(ordered: Sequence[ExperimentOutline], counts: Sequence[int], scored: Mapping[str, Scored]) -> str:
    """The first and the last point of a variant: one that stands beside others on the page, or the first."""
    first, last = ordered[0], ordered[-1]
    both = [variant for variant in first.variants if any(other.name == variant.name for other in last.variants)]
    shown = next((variant for variant in both if variant.beside), both[0] if both else None)
    if shown is None:
        return "Scores against the number of institutions that take part"
    ends = [scored[member.name].interval(shown.name, "accuracy") for member in (first, last)]
    return f"{shown.title}: accuracy {ends[0]} with {counts[0]} institutions, {ends[1]} with {counts[-1]} (not tested)"
