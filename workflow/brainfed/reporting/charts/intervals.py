"""Rows of a dot with its interval: one panel with the names at its left and the values at its right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import pandas as pd

from brainfed.reporting.charts.style import Panel, height_of, shown_ones, tooltip
from brainfed.reporting.intervals import Interval
from brainfed.reporting.variants import ShownVariant


@dataclass(frozen=True)
class IntervalRow:
    """One row.

    Attributes:
        variant: its method.
        found: mean and interval.
        group: key of its colour.
        shown: the value at the right.
        hollow: whether the dot is hollow.
        title: name at the left; empty: the method's title.
    """

    variant: ShownVariant
    found: Interval
    group: str
    shown: str
    hollow: bool = False
    title: str = ""


def table_of(rows: Sequence[IntervalRow]) -> pd.DataFrame:
    """variant, method, mean, low, high, group, shown, hollow, interval, runs; an unknown interval has no width."""
    return pd.DataFrame(
        [
            {
                "variant": row.variant.name,
                "method": row.title or row.variant.title,
                "mean": round(row.found.mean, 4),
                "low": round(row.found.low if _known(row.found) else row.found.mean, 4),
                "high": round(row.found.high if _known(row.found) else row.found.mean, 4),
                "group": row.group,
                "shown": row.shown,
                "hollow": row.hollow,
                "95 % interval": row.found.bounds if _known(row.found) else "unknown",
                "runs": row.found.counted,
            }
            for row in rows
        ]
    )


def _known(found: Interval) -> bool:
    """Whether an interval is drawn: that of few runs hardly has a meaning."""
    return found.known and not found.few


def interval_panel(
    rows: Sequence[IntervalRow],
    title: str,
    groups: Mapping[str, tuple[str, str]],
    *,
    width: int,
    zero: float,
    zero_title: str = "",
    reference: float | None = None,
    named: bool = True,
    legend: bool = True,
) -> Panel:
    """One panel of rows.

    Args:
        rows: from the top.
        title: words of the axis.
        groups: group -> its words and colour.
        width: pixels of the axis.
        zero: value of a dotted line, which is always inside.
        zero_title: words at that line.
        reference: value of a solid line.
        named: whether the names of the rows are drawn.
        legend: whether the legend of the groups is drawn.
    """
    table = table_of(rows)
    held = [group for group in groups if group in set(table["group"])]
    words = {group: groups[group][0] for group in held}
    ends = [zero, *table["low"], *table["high"], *([reference] if reference is not None else [])]
    margin = max(0.03 * (max(ends) - min(ends)), 0.005)
    across = alt.Scale(domain=[min(ends) - margin, max(ends) + margin], nice=False, zero=False)
    _, kept = shown_ones()
    base = alt.Chart(table).transform_filter(kept)
    y = alt.Y("method:N", sort=list(table["method"]), axis=alt.Axis(labels=named, title=None, labelPadding=8))
    colour = alt.Color(
        "group:N",
        scale=alt.Scale(domain=held, range=[groups[group][1] for group in held]),
        legend=alt.Legend(title=None, orient="top", labelExpr=f"{words}[datum.label]") if legend else None,
    )
    tip = tooltip("method", "shown", "95 % interval", "runs")
    bars = base.mark_rule(strokeWidth=3, opacity=0.7).encode(
        x=alt.X("low:Q", scale=across, title=title), x2="high:Q", y=y, color=colour, tooltip=tip
    )
    dots = base.mark_point(size=62, filled=True, opacity=1, strokeWidth=2).encode(
        x="mean:Q", y=y, stroke=colour, tooltip=tip,
        fill=alt.condition("datum.hollow", alt.value(alt.expr("background")), colour),
    )  # fmt: skip
    texts = base.mark_text(align="left", dx=8).encode(x=alt.value(width), y=y, text="shown:N")
    layers = [_line(zero, zero_title, dash=[2, 3])]
    if reference is not None:
        layers.append(_line(reference, "", dash=[1, 0]))
    return alt.layer(*layers, bars, dots, texts).properties(width=width, height=height_of(rows))


def _line(value: float, words: str, dash: list[int]) -> Panel | alt.Chart:
    held = alt.Chart(pd.DataFrame({"at": [value], "words": [words]}))
    line: alt.Chart = held.mark_rule(strokeDash=dash, style="soft").encode(x="at:Q")
    if not words:
        return line
    text = held.mark_text(align="left", baseline="bottom", dx=4, fontSize=10.5).encode(
        x="at:Q", y=alt.value(-3), text="words:N"
    )
    return alt.layer(line, text)
