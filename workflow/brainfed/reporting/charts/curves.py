"""Curves of all methods in one panel: few in colour, all others in grey, the one under the pointer in ink."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import pandas as pd

from brainfed.reporting.charts.style import Panel, shown_ones, tooltip
from brainfed.reporting.variants import Groups, ShownVariant

UNIT = alt.Scale(domain=[0, 1], nice=False)
TICKS = [0, 0.2, 0.4, 0.6, 0.8, 1]
HIT = 9
"""Width of the invisible line that a pointer meets."""


@dataclass(frozen=True)
class Curves:
    """Points of curves.

    Attributes:
        data: variant, method, and the columns below; one row a point, in the order of the line.
        x, y: columns of the curve.
        tip: columns of the tooltip.
        low, high: columns of its interval.
        bars: whether intervals are bars at points, or a band.
    """

    data: pd.DataFrame
    x: str
    y: str
    tip: tuple[str, ...]
    low: str
    high: str
    bars: bool = False


def across(field: str, title: str) -> alt.X:
    """A horizontal axis from 0 to 1."""
    return alt.X(f"{field}:Q", scale=UNIT, axis=alt.Axis(values=TICKS, title=title, format=".1f"))


def upwards(field: str, title: str) -> alt.Y:
    """A vertical axis from 0 to 1."""
    return alt.Y(f"{field}:Q", scale=UNIT, axis=alt.Axis(values=TICKS, title=title, format=".1f"))


def curves_chart(
    curves: Curves,
    shown: Sequence[ShownVariant],
    front: Sequence[ShownVariant],
    notes: Mapping[str, str],
    side: int,
    x: alt.X,
    y: alt.Y,
    groups: Groups,
) -> Panel:
    """All curves in one square with its diagonal, of `side` pixels; the other arguments are those of `curve_layers`."""
    square = alt.Chart(pd.DataFrame({"x": [0, 1], "y": [0, 1]}))
    diagonal = square.mark_line(strokeDash=[2, 3], strokeWidth=1).encode(x="x:Q", y="y:Q")
    return alt.layer(diagonal, *curve_layers(curves, shown, front, notes, x, y, groups)).properties(
        width=side, height=side
    )


def curve_layers(
    curves: Curves,
    shown: Sequence[ShownVariant],
    front: Sequence[ShownVariant],
    notes: Mapping[str, str],
    x: alt.X,
    y: alt.Y,
    groups: Groups,
) -> list[alt.Chart]:
    """All curves: grey ones, those in colour with their intervals, and the one under the pointer.

    Args:
        curves: their points.
        shown: the variants that have one.
        front: those in colour.
        notes: variant -> words beside its name in the legend.
        x: horizontal axis.
        y: vertical axis.
        groups: places of training.
    """
    coloured = [variant for variant in front if variant in shown]
    names = [variant.name for variant in coloured]
    titles = {one.name: f"{groups[one.place][0]}: {one.title}, {notes[one.name]}" for one in coloured}
    _, kept = shown_ones()
    base = alt.Chart(curves.data).transform_filter(kept)
    pointed = alt.selection_point(on="pointerover", fields=["variant"], empty=False, clear="pointerout")
    grey = base.transform_filter(alt.FieldOneOfPredicate("variant", [one.name for one in shown if one not in coloured]))
    mine = base.transform_filter(alt.FieldOneOfPredicate("variant", names))
    scale = alt.Scale(domain=names, range=[one.colour for one in coloured])
    colour = alt.Color(
        "variant:N",
        scale=scale,
        legend=alt.Legend(
            title=None, orient="right", labelExpr=f"{titles}[datum.label]", symbolType="stroke", symbolOpacity=1
        )
        if coloured
        else None,
    )
    others = grey.mark_line(strokeWidth=1, opacity=0.45).encode(x=x, y=y, detail="variant:N")
    if curves.bars:
        doubt = mine.mark_rule(strokeWidth=1.5, opacity=0.6).encode(
            x=x, y=alt.Y(f"{curves.low}:Q"), y2=f"{curves.high}:Q", color=colour
        )
    else:
        doubt = mine.mark_area(opacity=0.15).encode(
            x=x, y=alt.Y(f"{curves.low}:Q"), y2=f"{curves.high}:Q", color=colour
        )
    lines = mine.mark_line(strokeWidth=2, point={"size": 30} if curves.bars else False).encode(x=x, y=y, color=colour)
    over = base.mark_line(strokeWidth=2.5).encode(
        x=x, y=y, detail="variant:N", opacity=alt.condition(pointed, alt.value(1), alt.value(0))
    )
    hit = base.mark_line(strokeWidth=HIT, opacity=0).encode(x=x, y=y, detail="variant:N", tooltip=tooltip(*curves.tip))
    return [others, doubt, lines, over, hit.add_params(pointed)]
