"""Vega-Lite charts in the report's style: an SVG with its specification inside, which a page draws anew with tooltips.

A viewer shows the SVG as it is; the report takes the specification out of it and adds tooltips and a method filter.
"""

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import vl_convert
from altair.utils.schemapi import disable_debug_mode

from brainfed.reporting.figures.style import FAINT, INK
from brainfed.reporting.intervals import Interval
from brainfed.reporting.variants import ShownVariant
from brainfed.runtime.artefacts import atomic

Panel = alt.LayerChart | alt.FacetChart
ROW = 22
"""Pixels of a row."""
VERSION = "6.4"
"""Vega-Lite of the SVGs and of the script in the page."""
HIDDEN = "hidden"
"""Parameter of every chart: names of variants that are not shown."""
FONT = "DejaVu Sans, Verdana, Arial, sans-serif"
SOURCE = "dc:source"
"""Element of the SVG that holds the specification."""

# Altair would check each part when it is made; `save_chart` checks the whole chart.
disable_debug_mode()


def config(*, dark: bool = False) -> dict[str, Any]:
    """Vega-Lite's configuration on a light or a dark page."""
    ink, soft, rule, paper = ("#e6e9ed", "#a3adb9", "#38414b", "#14181d") if dark else (INK, FAINT, "#e3e6ea", "white")
    return {
        "background": paper,
        "font": FONT,
        "view": {"stroke": None},
        "text": {"color": ink, "fontSize": 11.5},
        "rule": {"color": soft},
        "line": {"color": soft},
        "axis": {
            "labelColor": ink, "titleColor": ink, "labelFontSize": 11.5, "titleFontSize": 11.5,
            "titleFontWeight": "normal", "gridColor": rule, "domainColor": soft, "tickColor": soft,
            "labelLimit": 330, "titlePadding": 8,
        },
        "axisY": {"titleAlign": "center"},
        "legend": {"symbolBaseFillColor": ink, "symbolBaseStrokeColor": ink,
                   "labelColor": ink, "titleColor": ink, "labelFontSize": 11.5, "titleFontSize": 11.5,
                   "titleFontWeight": "normal", "labelLimit": 420, "symbolStrokeWidth": 3},
        "header": {"labelColor": ink, "titleColor": ink, "labelFontSize": 12, "labelFontWeight": "bold"},
        "title": {"color": ink, "fontSize": 12, "anchor": "start", "fontWeight": "bold"},
        "axisBand": {"grid": False, "domain": False, "ticks": False},
        "style": {"soft": {"stroke": soft, "fill": soft}, "quiet": {"fill": soft}},
    }  # fmt: skip


def shown_ones() -> tuple[alt.Parameter, str]:
    """The parameter of the method filter, and the expression that keeps the variants that it does not name."""
    return alt.param(name=HIDDEN, value=[]), f"indexof({HIDDEN}, datum.variant) < 0"


def tooltip(*names: str) -> list[alt.Tooltip]:
    """Tooltip of columns that hold texts, or numbers as they are shown."""
    return [alt.Tooltip(field=name, type="nominal") for name in names]


def save_chart(chart: alt.TopLevelMixin, path: str | Path, finding: str = "") -> None:
    """Write a chart as SVG; its finding is the SVG's title.

    Args:
        chart: with data of its own.
        path: the SVG.
        finding: one sentence; empty without one.
    """
    specification = {key: value for key, value in chart.to_dict().items() if key not in {"$schema", "config"}}
    drawn = vl_convert.vegalite_to_svg({**specification, "config": config()}, vl_version=VERSION)
    start = drawn.index(">") + 1
    title = f"<dc:title>{html.escape(finding)}</dc:title>" if finding else ""
    inside = html.escape(json.dumps(specification, separators=(",", ":"), ensure_ascii=False), quote=False)
    held = f'<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">{title}<{SOURCE}>{inside}</{SOURCE}></metadata>'
    with atomic(path) as temporary:
        Path(temporary).write_text(drawn[:start] + held + drawn[start:], encoding="utf-8")


def height_of(rows: Sequence[object]) -> int:
    """Pixels of a chart with so many rows."""
    return ROW * max(len(rows), 1)


# Rows of a dot with its interval: one panel with the names at its left and the values at its right.


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
