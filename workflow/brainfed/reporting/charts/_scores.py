"""Scores as intervals: the answer in one picture, every method's mean, every method minus the reference."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from brainfed.cohort import DIAGNOSIS_WORDS, ClassWords
from brainfed.evaluation import INSTITUTION
from brainfed.reporting import (
    METRIC_TITLES,
    SHOWN_METRICS,
    SIGNIFICANT,
    Groups,
    Interval,
    Scored,
    ShownVariant,
    by_family,
    places,
    rounded,
    signed,
)
from brainfed.reporting.charts._style import IntervalRow, Panel, interval_panel, shown_ones, tooltip
from brainfed.reporting.text import Answer, MethodBeside

CHANCE = 0.5
DEFAULT = places()
"""Words and colours of a cohort of patients and controls."""
NAMED, PANEL = 700, 330
"""Pixels of the axis of the one panel of the answer, and of each of two panels."""


def headline_chart(
    answer: Answer, beside: Sequence[MethodBeside] = (), words: ClassWords = DIAGNOSIS_WORDS
) -> alt.TopLevelMixin | None:
    """The answer's methods on one axis, the highest AUC first, in the colour of the place where they train.

    Args:
        answer: the chosen methods.
        beside: methods that stand beside their baselines on every page, if they were run.
        words: nouns of the cohort.
    """
    scores = _headline_rows(answer, beside)
    if not scores:
        return None
    groups = places(words, unseen=answer.unseen)
    rows = [
        IntervalRow(variant, score, variant.place, score.text, title=f"{groups[variant.place][0]}: {variant.title}")
        for variant, score in scores
    ]
    title = "AUC, mean over institutions and tests, with its corrected 95 % interval"
    panel = interval_panel(rows, title, groups, width=NAMED, zero=CHANCE, zero_title="chance", named=True, legend=False)
    return panel.add_params(shown_ones()[0])


def forest_chart(
    scored: Scored, variants: Sequence[ShownVariant], reference: str, groups: Groups = DEFAULT, classes: int = 2
) -> alt.TopLevelMixin:
    """Mean AUC and accuracy of every variant with corrected intervals, by family.

    Args:
        scored: the runs.
        variants: in any order.
        reference: reference variant of the tests.
        groups: places of training.
        classes: their number; the dotted line of the accuracy is one over it.
    """
    shown = by_family(variants)
    panels = []
    for number, metric in enumerate(SHOWN_METRICS):
        scores = {variant.name: scored.interval(variant.name, metric) for variant in shown}
        runs = max(score.runs for score in scores.values())
        panels.append(
            interval_panel(
                [IntervalRow(one, scores[one.name], one.place, scores[one.name].text) for one in shown],
                f"{METRIC_TITLES[metric]} (mean of {runs} runs)",
                groups,
                width=PANEL,
                zero=CHANCE if metric == "auc" else 1 / classes,
                reference=scores[reference].mean if reference in scores else None,
                named=number == 0,
            )
        )
    return _beside(panels)


def differences_chart(
    tests: pd.DataFrame, variants: Sequence[ShownVariant], runs: int, groups: Groups = DEFAULT
) -> alt.TopLevelMixin | None:
    """Every variant minus the reference, AUC and accuracy, with corrected intervals; None for one method alone.

    Args:
        tests: variant, metric, scope, difference, ci_low, ci_high, p_holm.
        variants: in any order; the reference has no row.
        runs: number of test folds over all repeats.
        groups: places of training.
    """
    chosen = tests[tests["scope"] == INSTITUTION]
    shown = [variant for variant in by_family(variants) if (chosen["variant"] == variant.name).any()]
    if not shown:
        return None
    panels = []
    for number, metric in enumerate(SHOWN_METRICS):
        held = chosen[chosen["metric"] == metric].set_index("variant").to_dict("index")
        rows = []
        for variant in shown:
            test = held[variant.name]
            found = Interval(float(test["difference"]), float(test["ci_low"]), float(test["ci_high"]), runs)
            holds = float(test["p_holm"]) < SIGNIFICANT
            text = signed(found.mean, found.digits) + (" *" if holds else "")
            rows.append(IntervalRow(variant, found, variant.place, text, hollow=not holds))
        title = f"difference in {METRIC_TITLES[metric]}"
        panels.append(interval_panel(rows, title, groups, width=PANEL, zero=0, named=number == 0))
    return _beside(panels)


def _beside(panels: Sequence[Panel]) -> alt.TopLevelMixin:
    return alt.hconcat(*panels, spacing=62).add_params(shown_ones()[0])


def _headline_rows(answer: Answer, beside: Sequence[MethodBeside]) -> list[tuple[ShownVariant, Interval]]:
    """Variants and scores, the highest mean first."""
    if answer.chosen is None or answer.score is None:
        return []
    shown = [(answer.chosen, answer.score), *((one.other, one.score) for one in answer.comparisons)]
    for result in beside:
        shown += [(result.variant, result.score), *((one.other, one.score) for one in result.baselines)]
    once = {variant.name: (variant, score) for variant, score in shown}
    return sorted(once.values(), key=lambda row: -row[1].mean)


# Balanced accuracy of every variant: a dot with its interval for all sites together, a small mark for each site.

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


# AUC by sex, age, motion and site, of the best federated method and the strongest without federation.

SUBGROUP_PANEL, STEP = 640, 13
"""Pixels of the axis, and of one dot of a row."""
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
    panels = alt.layer(chance, bars, dots).properties(width=SUBGROUP_PANEL, height=alt.Step(STEP))
    header = alt.Header(title=None, labelOrient="top", labelAnchor="start")
    chart: alt.FacetChart = (
        panels.facet(row=alt.Row("property:N", sort=list(table["property"].unique()), header=header), spacing=12)
        .resolve_scale(y="independent")
        .add_params(shown_ones()[0])
    )
    return chart
