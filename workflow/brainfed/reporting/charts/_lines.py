"""Lines of scores over a setting: one colour, mark and dash a line, with intervals at its points."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from brainfed.reporting import FAINT, INK, Interval, rounded
from brainfed.reporting.charts._style import Panel, tooltip

SOLID, DASHED = (1, 0), (5, 3)
LEVELS = ((4, 2), (1, 2), (6, 2, 1, 2), (2, 2))
"""Dashes of level lines."""
SIDEWAYS = 0.012
"""Share of the axis between points of two lines at one value."""


@dataclass(frozen=True)
class DrawnLine:
    """One line, or a single mark.

    Attributes:
        title: in the legend; unique in a chart.
        colour: of line and marks.
        points: places on the axis, and the score at each.
        shape: of its marks; empty: it has none.
        dash: lengths of its strokes and gaps.
        band: whether its intervals are a band; else bars.
        width: of the line, pixels.
    """

    title: str
    colour: str
    points: Sequence[tuple[float, Interval]]
    shape: str = ""
    dash: tuple[int, ...] = SOLID
    band: bool = False
    width: float = 1.8


def sure(value: float) -> Interval:
    """A number without an interval."""
    return Interval(value, np.nan, np.nan, 0)


def level(number: int, title: str, value: float, ends: tuple[float, float]) -> DrawnLine:
    """The level line of what does not depend on the setting; its dash is that of its number."""
    return DrawnLine(title, FAINT, [(end, sure(value)) for end in ends], dash=LEVELS[number % len(LEVELS)], width=1.3)


def lines_panel(
    lines: Sequence[DrawnLine],
    across: str | list[str],
    upwards: str,
    *,
    width: int,
    height: int,
    ticks: Mapping[float, str] | None = None,
    log: bool = False,
    domain: tuple[float, float] | None = None,
    per_cent: bool = False,
    columns: int = 3,
    printed: tuple[float, float] | None = None,
    key: Sequence[DrawnLine] = (),
    aside: bool = True,
) -> Panel:
    """One panel of lines, with its legend below.

    Args:
        lines: in the order of the legend.
        across: title of the horizontal axis.
        upwards: title of the vertical axis.
        width: pixels.
        height: pixels.
        ticks: value on the horizontal axis -> its words; None: any.
        log: whether that axis is logarithmic.
        domain: ends of the vertical axis; None: all points and intervals.
        per_cent: whether its labels are.
        columns: of the legend.
        printed: place and value of the hollow diamond of a paper's number; None: there is none.
        key: lines of the legend, if other panels have more of them.
        aside: whether marks of several lines at one place stand side by side.
    """
    table = _table(lines, log=log, aside=aside)
    named = list({line.title: line for line in [*key, *lines]}.values())
    titles = [line.title for line in named]

    def scale(values: Sequence[Any]) -> alt.Scale:
        return alt.Scale(domain=titles, range=list(values))

    legend = alt.Legend(
        title=None,
        orient="bottom",
        columns=columns,
        labelLimit=460,
        symbolSize=70,
        symbolOpacity=1,
    )
    colour = alt.Color("series:N", scale=scale([line.colour for line in named]), legend=legend)
    shape = alt.Shape("series:N", scale=scale([line.shape or "stroke" for line in named]), legend=legend)
    dash = alt.StrokeDash("series:N", scale=scale([list(line.dash) for line in named]), legend=legend)
    ends = table["at"].min(), table["at"].max()
    kind: dict[str, Any] = {"type": "log"} if log else {"padding": 10, "zero": False}
    x_axis: dict[str, Any] = {"labelOverlap": True, "grid": False}
    if ticks is not None:
        words = {(int(at) if at == int(at) else at): word for at, word in ticks.items()}
        x_axis |= {"values": list(ticks), "labelExpr": f"{words}[datum.value]"}
        ends = min([*ticks, ends[0]]), max([*ticks, ends[1]])
    reach = [_wider(ends[0], 0.96), _wider(ends[1], 1.04)] if log else list(ends)
    across_scale = alt.Scale(domain=reach, nice=False, **kind)
    x = alt.X("at:Q", title=across, scale=across_scale, axis=alt.Axis(**x_axis))
    y_scale = alt.Scale(zero=False) if domain is None else alt.Scale(domain=list(domain), nice=False, clamp=True)
    y = alt.Y("mean:Q", title=upwards, scale=y_scale, axis=alt.Axis(format=".0%") if per_cent else alt.Axis())
    base = alt.Chart(table).encode(color=colour, tooltip=tooltip("series", "value", "score"))
    layers: list[alt.Chart] = []

    def of(kept: Sequence[DrawnLine]) -> alt.Chart:
        return base.transform_filter(alt.FieldOneOfPredicate("series", [line.title for line in kept]))

    bands = [line for line in lines if line.band]
    bars = [line for line in lines if not line.band and any(np.isfinite(found.low) for _, found in line.points)]
    if bands:
        layers.append(of(bands).mark_area(opacity=0.1).encode(x=x, y=alt.Y("low:Q", scale=y_scale), y2="high:Q"))
    if bars:
        layers.append(
            of(bars).mark_rule(strokeWidth=1.3, opacity=0.7).encode(x=x, y=alt.Y("low:Q", scale=y_scale), y2="high:Q")
        )
    for thick in sorted({line.width for line in lines}):
        held = [line for line in lines if line.width == thick and len(line.points) > 1]
        if held:
            layers.append(of(held).mark_line(strokeWidth=thick).encode(x=x, y=y, strokeDash=dash))
    marked = [line for line in lines if line.shape]
    if marked:
        layers.append(of(marked).mark_point(filled=True, size=55, opacity=1).encode(x=x, y=y, shape=shape))
    if printed is not None:
        mark = alt.Chart(pd.DataFrame({"at": [printed[0]], "mean": [printed[1]]})).mark_point(
            shape="diamond", size=60, filled=False, opacity=1, strokeWidth=1.6, stroke=INK
        )
        layers.append(mark.encode(x="at:Q", y="mean:Q"))
    return alt.layer(*layers).properties(width=width, height=height)


def _wider(value: float, share: float) -> float:
    return round(float(value) * share, 6)


def _table(lines: Sequence[DrawnLine], *, log: bool, aside: bool) -> pd.DataFrame:
    """series, at, mean, low, high, value, score; marks of several lines at one place stand side by side."""
    marked = [line for line in lines if aside and line.shape and len(line.points) > 1]
    places = [at for line in lines for at, _ in line.points]
    first, last = min(places), max(places)
    rows = []
    for line in lines:
        step = marked.index(line) - (len(marked) - 1) / 2 if line in marked else 0.0
        for at, found in line.points:
            known = np.isfinite(found.low)
            moved = at * (last / first) ** (SIDEWAYS * step) if log else at + SIDEWAYS * step * (last - first)
            rows.append({
                "series": line.title, "at": round(float(moved), 6), "mean": _four(found.mean),
                "low": _four(found.low if known else found.mean), "high": _four(found.high if known else found.mean),
                "value": f"{at:g}", "score": str(found) if known else rounded(found.mean, 3),
            })  # fmt: skip
    return pd.DataFrame(rows)


def _four(value: float) -> float | None:
    return round(float(value), 4) if np.isfinite(value) else None
