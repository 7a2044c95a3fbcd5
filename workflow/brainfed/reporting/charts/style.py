"""Vega-Lite charts in the report's style: an SVG with its specification inside, which a page draws anew with tooltips.

A viewer shows the SVG as it is; the report takes the specification out of it and adds tooltips and a method filter.
"""

import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert
from altair.utils.schemapi import disable_debug_mode

from brainfed.reporting.figures.style import FAINT, INK
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
