"""Charts of swept settings and of parts left out, with the numbers that a paper prints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import altair as alt
import numpy as np

from brainfed.federation import share_of
from brainfed.reporting import (
    PLACES,
    ExperimentOutline,
    PageTests,
    Scored,
    ShownVariant,
    read_splits,
    setting_in_words,
    signed,
    significant,
)
from brainfed.reporting.charts._lines import DrawnLine, level, lines_panel, numbered
from brainfed.reporting.charts._style import Chart, IntervalRow, Panel, headed, interval_panel, note_chart
from brainfed.reporting.tables import poison_finding, read_drops
from brainfed.runtime import canonical_json

# Accuracies that a paper prints, as its figures mark them.


@dataclass(frozen=True)
class PrintedAccuracy:
    """A paper's accuracy of one variant.

    Attributes:
        value: the accuracy.
        source: `FedNI in the paper, Table V`, for the method of a paper as it is; empty for any other variant.
    """

    value: float
    source: str = ""


Printed = Mapping[str, PrintedAccuracy]
"""Variant -> what a paper prints; a variant without a printed number is absent."""
NOTHING_PRINTED: Printed = MappingProxyType({})


# Variants of a sweep as lines: their groups, and their positions on the swept axis.


@dataclass(frozen=True)
class Series:
    """Variants that differ in the swept setting alone, in ascending order of it."""

    title: str
    values: tuple[Any, ...]
    variants: tuple[ShownVariant, ...]

    @property
    def swept(self) -> bool:
        """Whether it has more than one point."""
        return len(self.variants) > 1


def sweep_series(variants: Sequence[ShownVariant], axis: str) -> list[Series]:
    """One line for each group of variants that differ in `axis` alone; a lone variant is a line of one point."""
    groups: dict[str, list[ShownVariant]] = {}
    for variant in variants:
        groups.setdefault(_rest(variant, axis), []).append(variant)
    swept = [group[0].method for group in groups.values() if len(group) > 1]
    series = []
    for group in groups.values():
        ordered = sorted(group, key=lambda variant: _place(variant.setting(axis)))
        title = group[0].title
        if len(group) > 1:
            title = group[0].method_title if swept.count(group[0].method) == 1 else group[0].unswept_title
        series.append(Series(title, tuple(variant.setting(axis) for variant in ordered), tuple(ordered)))
    return series


def axis_title(axis: str) -> str:
    """`k` for `graph.k`, `local epochs` for `local_epochs`."""
    return setting_in_words(axis.rpartition(".")[2], "").removesuffix(" = ")


def _rest(variant: ShownVariant, axis: str) -> str:
    """All but the swept setting, as one text; a variant without it is alone in its group."""
    stage, _, name = axis.rpartition(".")
    settings: Mapping[str, Any] = {**variant.stages, "": variant.settings}
    kept = {
        part: {key: value for key, value in own.items() if (part, key) != (stage, name)}
        for part, own in settings.items()
    }
    return canonical_json([variant.method, kept, "" if variant.setting(axis) is not None else variant.name])


def _place(value: Any) -> tuple[int, float, str]:
    """Numbers in their order, before words."""
    return (0, float(value), "") if isinstance(value, int | float) else (1, 0.0, str(value))


# Effect of each part: accuracy and AUC of variants, with the paper's number for each (FedNI Fig. 2 to 4).

METRICS = (("accuracy", "accuracy"), ("auc", "AUC"))
PANEL, HEIGHT = 290, 250
"""Pixels of the axis of each of two panels of rows, and of the height of two panels of lines."""


def ablation_chart(outline: ExperimentOutline, scored: Scored, printed: Printed = NOTHING_PRINTED) -> Chart:
    """A row a variant in the order of the config; numbers to the right: mean, difference to the reference."""
    shown = outline.variants
    others = [variant.name for variant in shown if variant.name != outline.reference]
    values = {variant.name: printed[variant.name].value for variant in shown if variant.name in printed}
    compared = PageTests(scored, shown, outline.reference)
    panels: list[Panel] = []
    for metric, title in METRICS:
        differences = compared.differences(outline.reference, others, metric) if others else {}
        rows = []
        for variant in shown:
            score = scored.interval(variant.name, metric)
            text = score.text
            if variant.name in differences:
                difference, p = differences[variant.name]
                text += f"  {signed(difference.mean, difference.digits)}{' *' if significant(p) else ''}"
            rows.append(IntervalRow(variant, score, text))
        panels.append(
            interval_panel(
                rows, f"{title}, mean over institutions and runs", PLACES, width=PANEL, named=not panels, legend=False,
                reference=scored.interval(outline.reference, metric).mean,
                printed=values if metric == "accuracy" else None,
            )
        )  # fmt: skip
    reference = _short(outline)
    key = f"line: the mean of {reference}; numbers: the mean, and the mean minus that of {reference}"
    key += "; hollow diamond: printed in the paper" if values else ""
    return headed(alt.hconcat(*panels, spacing=120), ablation_finding(outline, scored), key)


def ablation_finding(outline: ExperimentOutline, scored: Scored) -> str:
    """The variants that differ significantly from the reference after correction, in one line."""
    titles = {variant.name: variant.title for variant in outline.variants if variant.name != outline.reference}
    if not titles:
        return f"{_short(outline)} has nothing to be compared with"
    compared = PageTests(scored, outline.variants, outline.reference)
    outcomes = {}
    for metric, name in METRICS:
        tests = compared.differences(outline.reference, list(titles), metric)
        if not any(np.isfinite(p) for _, p in tests.values()):
            return f"Too few runs to test anything against {_short(outline)}"
        above = [titles[variant] for variant, (gap, p) in tests.items() if significant(p) and gap.mean > 0]
        below = [titles[variant] for variant, (gap, p) in tests.items() if significant(p) and gap.mean < 0]
        outcomes[name.capitalize() if name.islower() else name] = _outcome(above, below, _short(outline))
    if len(set(outcomes.values())) == 1:
        return f"Accuracy and AUC: {outcomes['AUC']}"
    return "; ".join(f"{name}: {outcome}" for name, outcome in outcomes.items())


def _outcome(above: Sequence[str], below: Sequence[str], reference: str) -> str:
    if not above and not below:
        return f"nothing differs significantly from {reference}"
    said = [f"{_counted(above)} significantly above {reference}"] if above else []
    if below:
        said.append(f"{_counted(below)} significantly below" + ("" if above else f" {reference}"))
    return ", ".join(said)


def _counted(titles: Sequence[str]) -> str:
    return " and ".join(titles) if len(titles) < 3 else f"{len(titles)} variants"


def _short(outline: ExperimentOutline) -> str:
    return outline.variant(outline.reference).title


# Accuracy and AUC against one swept setting (FedNI Fig. 8: the number of neighbours k).

POISON_AXIS = "attacked"
UNITS = {"graph.k": " (neighbours of a subject)"}
"""Swept setting -> what its values count."""
FAR_APART = 50
"""Smallest ratio of the largest to the smallest value for a logarithmic axis."""


def sweep_chart(outline: ExperimentOutline, scored: Scored, printed: Printed = NOTHING_PRINTED) -> Chart:
    """A line with intervals a method; methods without the setting are level lines."""
    axis = outline.axes[0]
    series = sweep_series(outline.variants, axis)
    swept = [line for line in series if line.swept]
    if not swept:
        return note_chart(f"no variant of this experiment sweeps {axis_title(axis)}")
    others = [line for line in series if not line.swept]
    values = sorted({value for line in swept for value in line.values}, key=lambda value: (str(type(value)), value))
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    in_numbers = len(numbers) == len(values)
    places = dict(zip(values, numbers if in_numbers else map(float, range(len(values))), strict=True))
    log = in_numbers and numbers[0] > 0 and numbers[-1] / numbers[0] >= FAR_APART
    ends = min(places.values()), max(places.values())
    many, poisons = int(read_splits(outline)["institution"].nunique()), axis == POISON_AXIS
    ticks = {places[value]: f"{share_of(float(str(value)), many)} of {many}" if poisons else _shown(value)
             for value in values}  # fmt: skip
    across = "poisoned institutions" if poisons else axis_title(axis) + UNITS.get(axis, "")
    own = next((each for each in outline.variants if each.name in printed and printed[each.name].source), None)
    words, mark = "", None
    if own is not None:
        words = f"hollow diamond: {printed[own.name].source} ({axis_title(axis)} = {_shown(own.setting(axis))})"
        mark = places[own.setting(axis)], printed[own.name].value
    panels = []
    for metric, title in METRICS:
        lines = [
            replace(style, points=[(places[value], scored.interval(variant.name, metric))
                                   for value, variant in zip(line.values, line.variants, strict=True)])
            for line, style in zip(swept, _styles(swept), strict=True)
        ]  # fmt: skip
        lines += [level(number, line.title, scored.interval(line.variants[0].name, metric).mean, ends)
                  for number, line in enumerate(others)]  # fmt: skip
        if poisons:
            lines.append(level(len(others), "chance (AUC)", 0.5, ends))
        panels.append(
            lines_panel(
                lines, across, f"{title} (mean over runs)", width=350, height=HEIGHT, ticks=ticks, log=log,
                printed=mark if metric == "accuracy" else None,
            )
        )  # fmt: skip
    if poisons:
        finding = poison_finding(read_drops(outline.variants, scored, many), many)
    else:
        best = max(swept, key=lambda line: max(scored.interval(each.name, "accuracy").mean for each in line.variants))
        finding = sweep_finding(best, PageTests(scored, outline.variants, outline.reference), axis)
    return headed(alt.hconcat(*panels, spacing=40), finding, words)


def sweep_finding(series: Series, compared: PageTests, axis: str) -> str:
    """Position of the highest point of a line, and its difference from the shipped value or the lowest one."""
    name = axis_title(axis)
    scores = [compared.scored.interval(variant.name, "accuracy") for variant in series.variants]
    best = int(np.argmax([score.mean for score in scores]))
    usual = series.variants[0].shipped.get(axis)
    base = series.values.index(usual) if usual in series.values else 0
    best_value = f"{series.title} is most accurate at {name} = {_shown(series.values[best])} ({scores[best].text})"
    reference = series.variants[base].name
    others = [variant.name for variant in series.variants if variant.name != reference]
    tests = compared.differences(reference, others, "accuracy")
    if not any(np.isfinite(p) for _, p in tests.values()):
        return f"{best_value}; too few runs to test it"
    count = sum(significant(p) for _, p in tests.values())
    counted = compared.counted(reference, others, "accuracy")
    usually = f"{name} = {_shown(series.values[base])}" + (f" (Holm-corrected {counted})" if counted else "")
    if not count:
        return f"{best_value}; no value differs significantly from {usually}"
    return (
        f"{best_value}; {count} of {len(others)} values differ{'s' if count == 1 else ''} significantly from {usually}"
    )


def _styles(swept: Sequence[Series]) -> list[DrawnLine]:
    """Lines without points. A server that defends itself has those of its method, and a dashed line.

    Other lines whose colour and mark come again are dashed too.
    """
    firsts = [line.variants[0] for line in swept]
    methods = list(dict.fromkeys(first.method for first in firsts))
    by_method = any(first.is_defended for first in firsts)
    return [
        numbered(methods.index(first.method) if by_method else number, line.title, dashed=first.is_defended)
        for number, (line, first) in enumerate(zip(swept, firsts, strict=True))
    ]


def _shown(value: object) -> str:
    """2 for 2.0."""
    return f"{value:g}" if isinstance(value, float) else str(value)


# Scores against the number of institutions (FedNI Fig. 7).


def clients_chart(members: Sequence[ExperimentOutline], scored: Mapping[str, Scored]) -> Chart:
    """A line a variant over the members' numbers of institutions; `scored`: experiment -> its scores."""
    ordered = sorted(members, key=lambda member: int(member.split["count"]))
    counts = [int(member.split["count"]) for member in ordered]
    variants = list({variant.name: variant for member in ordered for variant in member.variants}.values())
    if not variants:
        return note_chart("no experiment belongs to this group")
    ticks = {float(count): str(count) for count in counts}
    across = "institutions that take part"
    panels = []
    for metric, title in METRICS:
        lines = [
            numbered(number, variant.title, [
                (float(count), scored[member.name].interval(variant.name, metric))
                for count, member in zip(counts, ordered, strict=True) if _has(member, variant)
            ])
            for number, variant in enumerate(variants)
        ]  # fmt: skip
        panels.append(lines_panel(lines, across, f"{title} (mean over runs)", width=350, height=HEIGHT, ticks=ticks))
    return headed(alt.hconcat(*panels, spacing=40), _finding_of_clients(ordered, counts, scored))


def _has(outline: ExperimentOutline, variant: ShownVariant) -> bool:
    return any(other.name == variant.name for other in outline.variants)


def _finding_of_clients(
    ordered: Sequence[ExperimentOutline], counts: Sequence[int], scored: Mapping[str, Scored]
) -> str:
    """The first and the last point of a variant: one that stands beside others on the page, or the first."""
    first, last = ordered[0], ordered[-1]
    both = [variant for variant in first.variants if _has(last, variant)]
    shown = next((variant for variant in both if variant.beside), both[0] if both else None)
    if shown is None:
        return "Scores against the number of institutions that take part"
    ends = [scored[member.name].interval(shown.name, "accuracy") for member in (first, last)]
    return f"{shown.title}: accuracy {ends[0]} with {counts[0]} institutions, {ends[1]} with {counts[-1]} (not tested)"
