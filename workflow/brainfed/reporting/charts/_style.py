"""Vega-Lite charts in the report's style: an SVG with its specification inside, which a page draws anew with tooltips.

A viewer shows the SVG as it is; the report takes the specification out of it and adds tooltips and a method filter.
"""

import html
import json
import textwrap
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import vl_convert
from altair.utils.schemapi import disable_debug_mode

from brainfed.reporting import FAINT, INK, Groups, Interval, ShownVariant
from brainfed.runtime import atomic

Panel = alt.LayerChart | alt.FacetChart
Chart = alt.Chart | alt.LayerChart | alt.FacetChart | alt.HConcatChart | alt.VConcatChart
ROW = 22
"""Pixels of a row."""
VERSION = "6.4"
"""Vega-Lite of the SVGs and of the script in the page."""
HIDDEN = "hidden"
"""Parameter of every chart: names of variants that are not shown."""
FILTER = alt.param(name=HIDDEN, value=[])
NOT_HIDDEN = f"indexof({HIDDEN}, datum.variant) < 0"
FONT = "DejaVu Sans, Verdana, Arial, sans-serif"
CROWDED = 300
"""Pixels of an axis: a shorter one has fewer ticks."""
LETTERS = 112
"""Of a line above a chart."""
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
        "title": {"color": ink, "fontSize": 12, "anchor": "start", "fontWeight": "bold", "subtitleColor": soft,
                  "subtitleFontSize": 11, "subtitlePadding": 4},
        "axisBand": {"grid": False, "domain": False, "ticks": False},
        "style": {"soft": {"stroke": soft, "fill": soft}, "quiet": {"fill": soft}},
    }  # fmt: skip


def tooltip(*names: str) -> list[alt.Tooltip]:
    """Tooltip of columns that hold texts, or numbers as they are shown."""
    return [alt.Tooltip(field=name, type="nominal") for name in names]


def coloured(field: str, colours: Mapping[str, str], legend: alt.Legend | None) -> alt.Color:
    """The colour of every value of a column."""
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return alt.Color(f"{field}:N", scale=scale, legend=legend)


def save_chart(chart: alt.TopLevelMixin, path: str | Path, finding: str = "") -> None:
    """Write a chart as SVG; its finding is the SVG's title.

    Args:
        chart: with data of its own.
        finding: one sentence; empty: the one that `headed` wrote above the chart, if any.
    """
    specification = {key: value for key, value in chart.to_dict().items() if key not in {"$schema", "config"}}
    parameters = specification.setdefault("params", [])
    if not any(each["name"] == HIDDEN for each in parameters):
        parameters.append({"name": HIDDEN, "value": []})
    heading = specification.get("title", {}).get("text", "")
    finding = finding or (" ".join(heading) if isinstance(heading, list) else "")
    drawn = vl_convert.vegalite_to_svg({**specification, "config": config()}, vl_version=VERSION)
    start = drawn.index(">") + 1
    title = f"<dc:title>{html.escape(finding)}</dc:title>" if finding else ""
    inside = html.escape(json.dumps(specification, separators=(",", ":"), ensure_ascii=False), quote=False)
    metadata = f'<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">{title}<{SOURCE}>{inside}</{SOURCE}></metadata>'
    with atomic(path) as temporary:
        Path(temporary).write_text(drawn[:start] + metadata + drawn[start:], encoding="utf-8")


def headed(chart: Chart, finding: str, key: str = "", letters: int = LETTERS) -> Chart:
    """A chart with its finding above it, and below that in grey what its marks mean."""
    title = alt.Title(textwrap.wrap(finding, letters), subtitle=textwrap.wrap(key, letters + 10), offset=14)
    return chart.properties(title=title)


def titled(panel: Chart, title: str, note: str = "") -> Chart:
    """A panel with its title, and a note in grey below that; without a title the note stands alone."""
    if not title:
        return panel.properties(title=alt.Title(note, fontWeight="normal", fontSize=11, frame="group"))
    return panel.properties(title=alt.Title(title, subtitle=textwrap.wrap(note, 48) or alt.Undefined, frame="group"))


def apart(panels: alt.HConcatChart | alt.VConcatChart) -> Chart:
    """Panels that each have their own colours and marks, and legends of them."""
    channels: dict[str, Any] = dict.fromkeys(("color", "stroke", "fill", "shape", "strokeDash"), "independent")
    resolved: Chart = panels.resolve_scale(**channels)
    return resolved


def note_chart(text: str, width: int = 400, height: int = 60) -> alt.Chart:
    """The reason why there is nothing to draw, in place of a chart or of a panel."""
    words = alt.Chart(pd.DataFrame({"words": [text]})).mark_text(style="quiet")
    chart: alt.Chart = words.encode(text="words:N").properties(width=width, height=height)
    return chart


def height_of(rows: Sized) -> int:
    """Pixels of a chart with so many rows."""
    return ROW * max(len(rows), 1)


# Rows of a dot with its interval: one panel with the names at its left and the values at its right.


@dataclass(frozen=True)
class IntervalRow:
    """One row, in the colour of the place where its method trains.

    Attributes:
        variant: its method.
        interval: mean and interval.
        shown: the value at the right; empty: the mean.
        hollow: whether the dot is hollow.
        title: name at the left; empty: the method's title.
    """

    variant: ShownVariant
    interval: Interval
    shown: str = ""
    hollow: bool = False
    title: str = ""

    @property
    def method(self) -> str:
        """Name at the left."""
        return self.title or self.variant.title

    @property
    def has_bar(self) -> bool:
        """Whether the interval is drawn: that of few runs hardly has a meaning."""
        return self.interval.known and not self.interval.few

    @property
    def cells(self) -> dict[str, object]:
        """The columns of `dot_rows`; an interval that is not drawn has no width."""
        mean = self.interval.mean
        low, high = (self.interval.low, self.interval.high) if self.has_bar else (mean, mean)
        return {
            "variant": self.variant.name, "method": self.method, "mean": round(mean, 4),
            "low": round(low, 4), "high": round(high, 4), "group": self.variant.place,
            "shown": self.shown or self.interval.text, "hollow": self.hollow,
            "95 % interval": self.interval.bounds if self.has_bar else "unknown", "runs": self.interval.counted,
        }  # fmt: skip


def interval_panel(
    rows: Sequence[IntervalRow],
    title: str,
    groups: Groups,
    *,
    width: int,
    zero: float | None = None,
    zero_title: str = "",
    reference: float | None = None,
    named: bool = True,
    legend: bool = True,
    printed: Mapping[str, float] | None = None,
) -> Panel:
    """One panel of rows of variants, from the top; the other arguments are those of `dot_rows`.

    Args:
        zero: value of a dotted line, which is always inside.
        zero_title: words at that line.
        reference: value of a solid line.
        printed: variant -> what a paper printed, a hollow diamond; None: no row has one.
    """
    lines = [Line(zero, zero_title)] if zero is not None else []
    lines += [Line(reference, dash=(1, 0))] if reference is not None else []
    table = pd.DataFrame([row.cells for row in rows])
    if printed:
        table["beside"] = [printed.get(row.variant.name) for row in rows]
    tip = ("method", "shown", "95 % interval", "runs")
    return dot_rows(table, title, groups, tip, width=width, lines=lines, named=named, legend=legend)


@dataclass(frozen=True)
class Line:
    """An upright line through all rows.

    Attributes:
        at: its value, which is always inside the axis.
        words: at its upper end.
        dash: lengths of its strokes and gaps.
    """

    at: float
    words: str = ""
    dash: tuple[int, int] = (2, 3)

    @property
    def drawn(self) -> Panel | alt.Chart:
        """The line and its words."""
        base = alt.Chart(pd.DataFrame({"at": [self.at], "words": [self.words]}))
        line: alt.Chart = base.mark_rule(strokeDash=list(self.dash), style="soft").encode(x="at:Q")
        if not self.words:
            return line
        text = base.mark_text(align="left", baseline="bottom", dx=4, fontSize=10.5).encode(
            x="at:Q", y=alt.value(-3), text="words:N"
        )
        return alt.layer(line, text)


def dot_rows(
    table: pd.DataFrame,
    title: str | list[str],
    groups: Groups,
    tip: Sequence[str],
    *,
    width: int,
    row: str = "method",
    lines: Sequence[Line] = (),
    named: bool = True,
    legend: bool = True,
    ticks: Mapping[float, str] | None = None,
    lanes: bool = False,
    shape: str = "diamond",
) -> Panel:
    """Rows of a dot over a bar, with a text at the right.

    Args:
        table: the column `row`, mean, low, high, group, shown, hollow, in the order of the rows; also `variant` where
            rows are of methods, and `beside`, a second and hollow mark of a row.
        title: words of the axis.
        groups: group -> its words and colour.
        tip: columns of the tooltip.
        width: pixels of the axis.
        row: column with the names of the rows.
        lines: upright ones.
        named: whether the names of the rows are drawn.
        legend: whether the legend of the groups is drawn.
        ticks: of a logarithmic axis, with their words; None: the axis is linear.
        lanes: whether the groups of a row lie below each other.
        shape: of the marks of `beside`.
    """
    order = list(dict.fromkeys(table[row]))
    shown_groups = {group: shown for group, shown in groups.items() if group in set(table["group"])}
    words = {group: shown for group, (shown, _) in shown_groups.items()}
    columns = 1 if lanes else alt.Undefined
    key = alt.Legend(title=None, orient="top", labelExpr=f"{words}[datum.label]", columns=columns) if legend else None
    colour = coloured("group", {group: shade for group, (_, shade) in shown_groups.items()}, key)
    base = alt.Chart(table).transform_filter(NOT_HIDDEN)
    place: dict[str, Any] = {
        "y": alt.Y(f"{row}:N", sort=order, axis=alt.Axis(labels=named, title=None, labelPadding=8))
    }
    if lanes:
        place["yOffset"] = alt.YOffset("group:N", sort=list(shown_groups))
    bars = base.mark_rule(strokeWidth=2 if lanes else 3, opacity=0.7).encode(
        x=_reaching_all(table, title, lines, ticks, width), x2="high:Q", **place, color=colour, tooltip=tooltip(*tip)
    )
    dots = base.mark_point(size=40 if lanes else 62, filled=True, opacity=1, strokeWidth=2).encode(
        x="mean:Q", **place, stroke=colour, tooltip=tooltip(*tip),
        fill=alt.condition("datum.hollow", alt.value(alt.expr("background")), colour),
    )  # fmt: skip
    layers = [*(line.drawn for line in lines), bars, dots]
    if "beside" in table:
        second = base.transform_filter("isValid(datum.beside)").mark_point(
            shape=shape, size=50, filled=False, opacity=1, strokeWidth=1.6, stroke=INK
        )
        layers.append(second.encode(x="beside:Q", **place, tooltip=tooltip(*tip)))
    if table["shown"].any():
        texts = base.mark_text(align="left", dx=8, fontSize=10.5 if lanes else alt.Undefined)
        layers.append(texts.encode(x=alt.value(width), **place, text="shown:N"))
    many = len(order) * (max(1, 0.7 * len(shown_groups)) if lanes else 1)
    return alt.layer(*layers).properties(width=width, height=round(ROW * max(many, 1)))


def _reaching_all(
    table: pd.DataFrame,
    title: str | list[str],
    lines: Sequence[Line],
    ticks: Mapping[float, str] | None,
    width: int,
) -> alt.X:
    """The axis of `dot_rows`, with all bars, marks and lines inside."""
    columns = ["low", "high", *(["beside"] if "beside" in table else [])]
    ends = np.array([*(line.at for line in lines), *(v for name in columns for v in table[name].dropna())])
    low, high = float(ends.min()), float(ends.max())
    if ticks:
        inside = [at for at in ticks if low / 2 <= at <= 2 * high]
        scale = alt.Scale(type="log", domain=[low / 2, 2 * high], nice=False)
        axis = alt.Axis(labelOverlap=True, values=inside, labelExpr=f"{dict(ticks)}[datum.value]")
    else:
        margin = max(0.03 * (high - low), 0.005) if high > low else 0.05 * max(1.0, abs(high))
        scale = alt.Scale(domain=[low - margin, high + margin], nice=False, zero=False)
        axis = alt.Axis(labelOverlap=True, tickCount=max(width // 55, 3) if width < CROWDED else alt.Undefined)
    return alt.X("low:Q", scale=scale, title=title, axis=axis)
