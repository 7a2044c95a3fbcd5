"""Balanced accuracy of every variant: a dot with its interval for all sites together, a small mark for each site."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from brainfed.reporting.charts.intervals import IntervalRow, interval_panel
from brainfed.reporting.charts.style import Panel, shown_ones, tooltip
from brainfed.reporting.rounding import rounded
from brainfed.reporting.variants import Groups

SHAPES = ("triangle-up", "square", "diamond", "cross", "triangle-down", "triangle-left", "triangle-right", "wedge")
"""Marks of sites, named in the legend; more sites than these have one mark, and are named by the tooltip."""
WIDTH, ROW, LANE = 700, 40, 12
"""Pixels of the axis, of a row, and from a row's middle to the marks of its sites."""
MARGIN = 0.015
"""From a site's mark to the end of the axis."""
SOFT = "#6b7280"
"""Of the marks; a dark page has a lighter one in its place (`charts.js`)."""


def by_site_chart(
    rows: Sequence[IntervalRow], at_sites: Sequence[Mapping[str, float]], groups: Groups, classes: int
) -> alt.TopLevelMixin:
    """A row a variant.

    Args:
        rows: balanced accuracy of all sites together.
        at_sites: site -> balanced accuracy, for each row; sites without one are left out.
        groups: places of training.
        classes: their number; the dotted line is one over it.
    """
    sites = list(dict.fromkeys(site for held in at_sites for site in held))
    dots = pd.DataFrame(
        [
            {
                "variant": row.variant.name, "method": row.title or row.variant.title, "site": site,
                "mean": round(value, 4), "balanced accuracy": rounded(value, 2),
            }
            for row, held in zip(rows, at_sites, strict=True) for site, value in held.items()
        ],
        columns=["variant", "method", "site", "mean", "balanced accuracy"],
    )  # fmt: skip
    bars = " with the 95 % interval" if any(row.found.known and not row.found.few for row in rows) else ""
    title = f"balanced accuracy: all sites together{bars}, and each site"
    panel = interval_panel(
        rows, title, groups, width=WIDTH, zero=1 / classes, zero_title="guessing", named=True, legend=len(rows) > 1
    )
    if dots.empty:
        return panel.add_params(shown_ones()[0])
    _, kept = shown_ones()
    named = len(sites) <= len(SHAPES)
    shape = alt.Shape(
        "site:N",
        scale=alt.Scale(domain=sites, range=list(SHAPES[: len(sites)])),
        legend=alt.Legend(
            title=None, orient="top", symbolFillColor="transparent", symbolStrokeColor=SOFT, symbolStrokeWidth=1.8
        ),
    )
    marks = (
        alt.Chart(dots)
        .transform_filter(kept)
        .mark_point(size=52, filled=False, opacity=1, strokeWidth=1.8, stroke=SOFT, yOffset=LANE)
    )
    held = marks.encode(
        x=alt.X("mean:Q", axis=alt.Axis(title=title, tickCount=8)),
        y=alt.Y("method:N", sort=[row.title or row.variant.title for row in rows]),
        shape=shape if named else alt.value("circle"),
        tooltip=tooltip("method", "site", "balanced accuracy"),
    )
    return (
        alt.layer(*_reaching(panel, dots["mean"]), held)
        .properties(width=WIDTH, height=ROW * len(rows))
        .add_params(shown_ones()[0])
    )


def _reaching(panel: Panel, values: "pd.Series[float]") -> list[Any]:
    """Layers of a panel whose axis reaches these values too: its bars hold the scale of all."""
    layers: list[Any] = list(panel.layer)
    for layer in layers:
        x = layer.to_dict(context={"pre_transform": False}).get("encoding", {}).get("x", {})
        if "scale" in x:
            low, high = x["scale"]["domain"]
            domain = [min(low, values.min() - MARGIN), max(high, values.max() + MARGIN)]
            layer.encoding.x["scale"]["domain"] = domain
    return layers
