"""AUC by sex, age, motion and site, of the best federated method and the strongest without federation."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from brainfed.cohort.class_words import DIAGNOSIS_WORDS, ClassWords
from brainfed.reporting.charts.style import shown_ones, tooltip
from brainfed.reporting.rounding import rounded
from brainfed.reporting.variants import Groups, ShownVariant, places

PANEL, STEP = 640, 13
"""Pixels of the axis, and of one dot of a row."""
CHANCE = 0.5
TENTHS = [number / 10 for number in range(11)]
TITLE = "AUC within the group, with its 95 % interval over subjects"


def subgroups_chart(
    scores: pd.DataFrame,
    front: Sequence[ShownVariant],
    words: ClassWords = DIAGNOSIS_WORDS,
    groups: Groups | None = None,
) -> alt.TopLevelMixin | None:
    """One row a group, one dot a method; None without a group that is large enough.

    Args:
        scores: `subgroups.SUBGROUP_COLUMNS`.
        front: the methods, the first one first.
        words: nouns of the cohort.
        groups: places of training; None: those of the words.
    """
    shown = [variant for variant in front if (scores["variant"] == variant.name).any()]
    if not shown:
        return None
    named = groups or places(words)
    titles = {variant.name: f"{named[variant.place][0]}: {variant.title}" for variant in shown}
    table = scores[scores["variant"].isin(list(titles))].rename(columns={"low": "bottom", "high": "top"})
    table = table.assign(
        method=table["variant"].map(titles),
        row=table["group"] + " (n = " + table["subjects"].astype(str) + ")",
        AUC=[rounded(auc, 2) for auc in table["auc"]],
        interval=[
            f"{rounded(low, 2)} to {rounded(high, 2)}" for low, high in zip(table["bottom"], table["top"], strict=True)
        ],
        people=[
            f"{total}, {sick} of them {words.many[1]}"
            for total, sick in zip(table["subjects"], table["patients"], strict=True)
        ],
    ).round({"auc": 4, "bottom": 4, "top": 4})  # fmt: skip
    _, kept = shown_ones()
    ends = [CHANCE, *table["bottom"], *table["top"]]
    across = alt.Scale(domain=[max(min(ends) - 0.02, 0), min(max(ends) + 0.02, 1)], nice=False, zero=False)
    colour = alt.Color(
        "method:N",
        scale=alt.Scale(domain=list(titles.values()), range=[one.colour for one in shown]),
        legend=alt.Legend(title=None, orient="top"),
    )
    y = alt.Y("row:N", sort=list(table["row"].unique()), axis=alt.Axis(title=None, labelPadding=8))
    offset = alt.YOffset("method:N", sort=list(titles.values()))
    tip = tooltip("method", "AUC", "interval", "people")
    base = alt.Chart(table).transform_filter(kept)
    chance = base.mark_rule(strokeDash=[2, 3], style="soft").encode(x=alt.datum(CHANCE, type="quantitative"))
    bars = base.mark_rule(strokeWidth=2.5, opacity=0.55).encode(
        x=alt.X("bottom:Q", scale=across, axis=alt.Axis(title=TITLE, grid=True, values=TENTHS)),
        x2="top:Q", y=y, yOffset=offset, color=colour, tooltip=tip,
    )  # fmt: skip
    dots = base.mark_circle(size=42, opacity=1).encode(x="auc:Q", y=y, yOffset=offset, color=colour, tooltip=tip)
    panels = alt.layer(chance, bars, dots).properties(width=PANEL, height=alt.Step(STEP))
    header = alt.Header(title=None, labelOrient="top", labelAnchor="start")
    chart: alt.FacetChart = (
        panels.facet(row=alt.Row("property:N", sort=list(table["property"].unique()), header=header), spacing=12)
        .resolve_scale(y="independent")
        .add_params(shown_ones()[0])
    )
    return chart
