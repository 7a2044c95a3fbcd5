"""Panels of many values: histograms beside what chance gives, and rows of single values with boxes."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from brainfed.reporting import COUNTS, INK, significant_digits
from brainfed.reporting.charts._style import ROW, Panel, coloured, tooltip
from brainfed.runtime import Float64

JITTER_SEED = 0
MOST_DOTS = 2000
"""Of so many values and more, evenly chosen ones of a group are drawn beside its box."""
LANE = 46
"""Pixels of a row of single values."""


def histogram(
    values: Float64,
    edges: Float64,
    across: str | list[str],
    upwards: str,
    *,
    chance: float = 0.0,
    width: int = 300,
    height: int = 200,
) -> Panel:
    """Counts between edges, below the counts that a normal distribution around 0 gives.

    Args:
        values: (n,).
        edges: (b + 1,) at equal distances.
        across: title of the horizontal axis.
        upwards: title of the vertical axis.
        chance: standard deviation of that distribution; 0: it is not drawn.
        width, height: pixels.
    """
    counts, _ = np.histogram(values, edges)
    bars = pd.DataFrame({"start": edges[:-1].round(6), "end": edges[1:].round(6), "count": counts})
    scale = alt.Scale(domain=[float(edges[0].round(6)), float(edges[-1].round(6))], nice=False)
    x = alt.X("start:Q", bin="binned", scale=scale, title=across, axis=alt.Axis(tickCount=5, grid=False))
    drawn = alt.Chart(bars).mark_bar(color=COUNTS, binSpacing=1).encode(
        x=x, x2="end:Q", y=alt.Y("count:Q", title=upwards, axis=alt.Axis(tickCount=5)), tooltip=tooltip("count")
    )  # fmt: skip
    layers = [drawn]
    if chance:
        grid = np.linspace(edges[0], edges[-1], 121)
        density = np.exp(-0.5 * np.square(grid / chance)) / (chance * np.sqrt(2 * np.pi))
        each = len(values) * (edges[1] - edges[0])
        expected = pd.DataFrame({"x": grid.round(6), "expected": (density * each).round(4)})
        layers.append(alt.Chart(expected).mark_line(color=INK, strokeWidth=1.6).encode(x="x:Q", y="expected:Q"))
    return alt.layer(*layers).properties(width=width, height=height)


def box_rows(
    groups: Mapping[str, tuple[str, Float64]],
    title: str,
    *,
    width: int,
    dots: bool,
    whiskers: tuple[float, float] | None = None,
    named: bool = True,
    limit: float | None = None,
    start: float | None = None,
) -> Panel:
    """A row a group: the middle half of its values as a box with their median, and every value as a dot above it.

    Args:
        groups: name of a row -> its colour and values.
        title: words of the axis.
        width: pixels of the axis.
        dots: whether single values are drawn.
        whiskers: per cent from which to which they reach; None: to the last value within 1.5 times the box.
        named: whether the names of the rows are drawn.
        limit: value of a dashed line, which is always inside; None: none.
        start: where the axis starts; None: at the smallest value.
    """
    order = list(groups)
    colour = coloured("group", {name: shade for name, (shade, _) in groups.items()}, None)
    y = alt.Y("group:N", sort=order, scale=alt.Scale(domain=order),
              axis=alt.Axis(title=None, labels=named, labelPadding=8))  # fmt: skip
    lane = alt.Scale(domain=[-1, 1])
    ends = [value for _, values in groups.values() for value in values] + ([limit] if limit is not None else [])
    first, last = (min(ends, default=0.0) if start is None else start), 1.03 * max(ends, default=1.0)
    scale = alt.Scale(domain=[round(first, 4), round(last, 4)], nice=False, zero=False)
    base = alt.Chart(pd.DataFrame([
        {"group": name, "place": 0.55 if dots else 0.0, **_box(values, whiskers)}
        for name, (_, values) in groups.items() if len(values)
    ]))  # fmt: skip
    shared: dict[str, Any] = {
        "y": y, "yOffset": alt.YOffset("place:Q", scale=lane),
        "tooltip": tooltip("group", "subjects", "median", "middle half"),
    }  # fmt: skip
    x = alt.X("least:Q", scale=scale, axis=alt.Axis(title=title, tickCount=6))
    size = 11 if dots else 14
    layers: list[Any] = [
        base.mark_rule(color=INK).encode(x=x, x2="low:Q", **shared),
        base.mark_rule(color=INK).encode(x="high:Q", x2="most:Q", **shared),
        base.mark_bar(size=size, stroke=INK, strokeWidth=0.8, fillOpacity=0.6).encode(
            x="low:Q", x2="high:Q", color=colour, **shared
        ),
        base.mark_tick(color=INK, thickness=2, size=size).encode(x="middle:Q", **shared),
    ]
    if dots:
        single = pd.concat([_dots(name, values) for name, (_, values) in groups.items()], ignore_index=True)
        layers.insert(0, alt.Chart(single).mark_circle(size=14, opacity=0.5).encode(
            x="value:Q", y=y, yOffset=alt.YOffset("place:Q", scale=lane), color=colour
        ))  # fmt: skip
    if limit is not None:
        line = alt.Chart(pd.DataFrame({"at": [limit]})).mark_rule(strokeDash=[4, 3], style="soft")
        layers.insert(0, line.encode(x="at:Q"))
    return alt.layer(*layers).properties(width=width, height=(LANE if dots else ROW) * max(len(order), 1))


def _box(values: Float64, whiskers: tuple[float, float] | None) -> dict[str, float | str]:
    low, middle, high = (float(value) for value in np.quantile(values, [0.25, 0.5, 0.75]))
    if whiskers is None:
        inside = values[(values >= low - 1.5 * (high - low)) & (values <= high + 1.5 * (high - low))]
        least, most = float(inside.min()), float(inside.max())
    else:
        least, most = (float(value) for value in np.percentile(values, whiskers))
    marks = {"least": least, "low": low, "middle": middle, "high": high, "most": most}
    first, half, last = (significant_digits(value, 3) for value in (low, middle, high))
    shown = {"median": half, "middle half": f"{first} to {last}", "subjects": str(len(values))}
    return {name: round(value, 4) for name, value in marks.items()} | shown


def _dots(group: str, values: Float64) -> pd.DataFrame:
    place = np.random.default_rng(JITTER_SEED).uniform(-0.9, 0.15, len(values))
    chosen = np.unique(np.linspace(0, len(values) - 1, min(len(values), MOST_DOTS)).astype(int))
    return pd.DataFrame({"group": group, "value": values[chosen].round(4), "place": place[chosen].round(3)})


def steps(
    table: pd.DataFrame, x: alt.X, y: alt.Y, colours: Mapping[str, str], tip: Sequence[str] = (), *, legend: bool = True
) -> alt.Chart:
    """One outline a series (column `series`) over whole numbers or equal bins, named in the order of `colours`."""
    key = alt.Legend(title=None, orient="top", columns=1) if legend else None
    chart: alt.Chart = alt.Chart(table).mark_line(interpolate="step", strokeWidth=1.8).encode(
        x=x, y=y, tooltip=tooltip(*tip) if tip else alt.Undefined, color=coloured("series", colours, key)
    )  # fmt: skip
    return chart
