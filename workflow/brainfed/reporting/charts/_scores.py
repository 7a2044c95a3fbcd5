"""Scores as intervals: the answer in one picture, every method's mean, and minus the reference or its counterparts."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
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
    interval,
    places,
    rounded,
    signed,
)
from brainfed.reporting.charts._style import (
    FILTER,
    NOT_HIDDEN,
    IntervalRow,
    Panel,
    coloured,
    height_of,
    interval_panel,
    tooltip,
)
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
        beside: methods that stand beside their baselines on every page, if they were run.
    """
    if answer.chosen is None or answer.score is None:
        return None
    shown = [(answer.chosen, answer.score), *((each.other, each.score) for each in answer.comparisons)]
    for result in beside:
        shown += [(result.variant, result.score), *((baseline.other, baseline.score) for baseline in result.baselines)]
    once = {variant.name: (variant, score) for variant, score in shown}
    groups = places(words, unseen=answer.unseen)
    rows = [
        IntervalRow(variant, score, title=f"{groups[variant.place][0]}: {variant.title}")
        for variant, score in sorted(once.values(), key=lambda row: -row[1].mean)
    ]
    title = "AUC, mean over institutions and tests, with its corrected 95 % interval"
    panel = interval_panel(rows, title, groups, width=NAMED, zero=CHANCE, zero_title="chance", named=True, legend=False)
    return panel.add_params(FILTER)


def forest_chart(
    scored: Scored, variants: Sequence[ShownVariant], reference: str, groups: Groups = DEFAULT, classes: int = 2
) -> alt.TopLevelMixin:
    """Mean AUC and accuracy of every variant with corrected intervals, by family.

    Args:
        classes: their number; the dotted line of the accuracy is one over it.
    """
    panels: list[Panel] = []
    for metric in SHOWN_METRICS:
        rows = [IntervalRow(variant, scored.interval(variant.name, metric)) for variant in by_family(variants)]
        title = f"{METRIC_TITLES[metric]} (mean of {max(row.interval.runs for row in rows)} runs)"
        means = {row.variant.name: row.interval.mean for row in rows}
        panels.append(
            interval_panel(
                rows, title, groups, width=PANEL, zero=CHANCE if metric == "auc" else 1 / classes,
                reference=means.get(reference), named=not panels,
            )
        )  # fmt: skip
    return _side_by_side(panels)


def differences_chart(
    tests: pd.DataFrame, variants: Sequence[ShownVariant], runs: int, groups: Groups = DEFAULT
) -> alt.TopLevelMixin | None:
    """Every variant minus the reference, AUC and accuracy, with corrected intervals; None for one method alone.

    Args:
        tests: variant, metric, scope, difference, ci_low, ci_high, p_holm.
        variants: in any order; the reference has no row.
        runs: number of test folds over all repeats.
    """
    chosen = tests[tests["scope"] == INSTITUTION]
    shown = [variant for variant in by_family(variants) if (chosen["variant"] == variant.name).any()]
    if not shown:
        return None
    panels: list[Panel] = []
    for metric in SHOWN_METRICS:
        by_variant = chosen[chosen["metric"] == metric].set_index("variant").to_dict("index")
        rows = []
        for variant in shown:
            test = by_variant[variant.name]
            difference = Interval(float(test["difference"]), float(test["ci_low"]), float(test["ci_high"]), runs)
            holds = float(test["p_holm"]) < SIGNIFICANT
            text = signed(difference.mean, difference.digits) + (" *" if holds else "")
            rows.append(IntervalRow(variant, difference, text, hollow=not holds))
        title = f"difference in {METRIC_TITLES[metric]}"
        panels.append(interval_panel(rows, title, groups, width=PANEL, zero=0, named=not panels))
    return _side_by_side(panels)


def operating_chart(
    predictions: pd.DataFrame, variants: Sequence[ShownVariant], ratio: float, groups: Groups = DEFAULT
) -> alt.TopLevelMixin | None:
    """Mean sensitivity at two specificities with corrected intervals; None without a run of both classes.

    Args:
        predictions: variant, repeat, fold, institution, score, label of two classes.
        ratio: n_test / n_train of a run.
    """
    panels: list[Panel] = []
    for specificity in (0.8, 0.95):
        from brainfed.evaluation import sensitivities  # statsmodels

        runs = sensitivities(predictions, specificity).assign(metric="sensitivity", scope=INSTITUTION)
        shown = [variant for variant in by_family(variants) if (runs["variant"] == variant.name).any()]
        if not shown:
            return None
        means = [interval(runs, variant.name, "sensitivity", ratio) for variant in shown]
        rows = [IntervalRow(variant, mean, rounded(mean.mean, 2)) for variant, mean in zip(shown, means, strict=True)]
        title = f"sensitivity at a specificity of {rounded(specificity, 2)}"
        panels.append(interval_panel(rows, title, groups, width=PANEL, zero=1 - specificity, named=not panels))
    return _side_by_side(panels)


def _side_by_side(panels: Sequence[Panel]) -> alt.TopLevelMixin:
    return alt.hconcat(*panels, spacing=62).add_params(FILTER)


# Balanced accuracy of every variant: a dot with its interval for all sites together, a small mark for each site.

SHAPES = ("triangle-up", "square", "diamond", "cross", "triangle-down", "triangle-left", "triangle-right", "wedge")
"""Marks of sites, named in the legend; more sites than these have one mark, and are named by the tooltip."""
ROW, LANE = 40, 12
"""Pixels of a row, and from a row's middle to the marks of its sites."""
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
        classes: their number; the dotted line is one over it.
    """
    sites = list(dict.fromkeys(site for own in at_sites for site in own))
    bars = " with the 95 % interval" if any(row.has_bar for row in rows) else ""
    title = f"balanced accuracy: all sites together{bars}, and each site"
    panel = interval_panel(
        rows, title, groups, width=NAMED, zero=1 / classes, zero_title="guessing", named=True, legend=len(rows) > 1
    )
    if not sites:
        return panel.add_params(FILTER)
    dots = pd.DataFrame([
        {
            "variant": row.variant.name, "method": row.method, "site": site, "mean": round(value, 4),
            "balanced accuracy": rounded(value, 2),
        }
        for row, own in zip(rows, at_sites, strict=True) for site, value in own.items()
    ])  # fmt: skip
    shape: Any = alt.value("circle")
    if len(sites) <= len(SHAPES):
        key = alt.Legend(
            title=None, orient="top", symbolFillColor="transparent", symbolStrokeColor=SOFT, symbolStrokeWidth=1.8
        )
        shape = alt.Shape("site:N", scale=alt.Scale(domain=sites, range=list(SHAPES[: len(sites)])), legend=key)
    marks = alt.Chart(dots).transform_filter(NOT_HIDDEN)
    points = marks.mark_point(size=52, filled=False, opacity=1, strokeWidth=1.8, stroke=SOFT, yOffset=LANE).encode(
        x=alt.X("mean:Q", axis=alt.Axis(title=title, tickCount=8)),
        y=alt.Y("method:N", sort=[row.method for row in rows]),
        shape=shape,
        tooltip=tooltip("method", "site", "balanced accuracy"),
    )
    layers = [*_reaching(panel, dots["mean"]), points]
    return alt.layer(*layers).properties(width=NAMED, height=ROW * len(rows)).add_params(FILTER)


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
    ends = [CHANCE, *table["bottom"], *table["top"]]
    scale = alt.Scale(domain=[max(min(ends) - 0.02, 0), min(max(ends) + 0.02, 1)], nice=False, zero=False)
    title = "AUC within the group, with its 95 % interval over subjects"
    axis = alt.Axis(title=title, grid=True, values=[number / 10 for number in range(11)])
    colours = {titles[variant.name]: variant.colour for variant in shown}
    rows: dict[str, Any] = {
        "y": alt.Y("row:N", sort=list(table["row"].unique()), axis=alt.Axis(title=None, labelPadding=8)),
        "yOffset": alt.YOffset("method:N", sort=list(titles.values())),
        "color": coloured("method", colours, alt.Legend(title=None, orient="top")),
        "tooltip": tooltip("method", "AUC", "interval", "people"),
    }
    base = alt.Chart(table).transform_filter(NOT_HIDDEN)
    chance = base.mark_rule(strokeDash=[2, 3], style="soft").encode(x=alt.datum(CHANCE, type="quantitative"))
    bars = base.mark_rule(strokeWidth=2.5, opacity=0.55).encode(
        x=alt.X("bottom:Q", scale=scale, axis=axis), x2="top:Q", **rows
    )
    dots = base.mark_circle(size=42, opacity=1).encode(x="auc:Q", **rows)
    panels = alt.layer(chance, bars, dots).properties(width=SUBGROUP_PANEL, height=alt.Step(STEP))
    header = alt.Header(title=None, labelOrient="top", labelAnchor="start")
    facets = panels.facet(row=alt.Row("property:N", sort=list(table["property"].unique()), header=header), spacing=12)
    chart: alt.FacetChart = facets.resolve_scale(y="independent").add_params(FILTER)
    return chart


# Gain of institutions from federation: a method minus its own counterparts, the same model alone and on pooled data.

METRIC = "auc"
SIDES = {"alone": "minus its counterpart alone", "pooled": "minus its counterpart on pooled data"}
GAIN_PANEL, NUMBERS = 300, (8, 58)
"""Pixels of the axis, and from its end to the two columns of numbers."""
SIGNED = "datum.value === 0 ? '0' : format(datum.value, '+.3~f')"
LEAST_RANGE = 0.01
"""The axis reaches this AUC on both sides: a model that equals its counterpart differs by rounding alone."""


def gain_chart(gain: pd.DataFrame, variants: Sequence[ShownVariant], scored: Scored) -> alt.TopLevelMixin | None:
    """Left the gain over training alone, right over pooled data; None if no federated method has a counterpart here.

    Args:
        gain: `scores.GAIN_COLUMNS`.
        variants: all variants of the experiment; the federated ones have a row each.
        scored: the runs; they give the mean of a row and its interval.
    """
    shown = [variant for variant in by_family(variants) if (gain["variant"] == variant.name).any()]
    if not shown:
        return None
    titles = {variant.name: variant.title for variant in variants}
    chosen = gain[gain["metric"] == METRIC].dropna(subset=["mean"])
    panels: list[Panel] = []
    for side in SIDES:
        own = chosen[chosen["against"] == side]
        means = pd.DataFrame([_mean_gain(own, side, variant, scored, titles) for variant in shown])
        panels.append(_gain_panel(own, means, shown, f"AUC {SIDES[side]}", named=not panels))
    return alt.hconcat(*panels, spacing=110).add_params(FILTER)


def _gain_panel(
    gain: pd.DataFrame, means: pd.DataFrame, shown: Sequence[ShownVariant], title: str, *, named: bool
) -> Panel:
    titles = {variant.name: variant.title for variant in shown}
    dots = gain[gain["variant"].isin(list(titles))]
    dots = pd.DataFrame({
        "variant": dots["variant"], "method": dots["variant"].map(titles), "institution": dots["institution"],
        "gain": dots["mean"].round(4), "AUC gained": [signed(value) for value in dots["mean"]],
    })  # fmt: skip
    ends = [-LEAST_RANGE, LEAST_RANGE, *dots["gain"], *means["mean"].dropna()]
    margin = 0.06 * (max(ends) - min(ends))
    scale = alt.Scale(domain=[min(ends) - margin, max(ends) + margin], nice=False, zero=False)
    x = alt.X("gain:Q", scale=scale, axis=alt.Axis(title=title, labelExpr=SIGNED, tickCount=6))
    y = alt.Y("method:N", sort=list(titles.values()), axis=alt.Axis(labels=named, title=None, labelPadding=8))
    colour = alt.value(shown[0].colour)
    base, rows = (alt.Chart(table).transform_filter(NOT_HIDDEN) for table in (dots, means))
    zero = alt.Chart(pd.DataFrame({"gain": [0.0]})).mark_rule(style="soft").encode(x="gain:Q")
    reach = base.mark_rule(strokeWidth=1.2, opacity=0.4).encode(
        x=alt.X("min(gain):Q"), x2="max(gain):Q", y=y, color=colour
    )
    points = base.mark_circle(size=44, opacity=0.55).encode(
        x=x, y=y, color=colour, tooltip=tooltip("method", "institution", "AUC gained")
    )
    known = rows.transform_filter("isValid(datum.mean)")
    diamonds = known.mark_point(shape="diamond", size=95, filled=True, opacity=1, stroke="white", strokeWidth=1).encode(
        x="mean:Q",
        y=y,
        color=colour,
        tooltip=tooltip("method", "counterpart", "gained", "95 % interval", "better off", "runs"),
    )
    numbers = [
        rows.mark_text(align="left", dx=away).encode(x=alt.value(GAIN_PANEL), y=y, text=f"{column}:N")
        for away, column in zip(NUMBERS, ("gained", "share"), strict=True)
    ]
    heads = [
        alt.Chart(pd.DataFrame({"words": [words]}))
        .mark_text(align="left", baseline="bottom", dx=away, fontSize=10.5, style="quiet")
        .encode(x=alt.value(GAIN_PANEL), y=alt.value(-3), text="words:N")
        for away, words in zip(NUMBERS, ("mean", "better off"), strict=True)
    ]
    layers = (zero, reach, points, diamonds, *numbers, *heads)
    return alt.layer(*layers).properties(width=GAIN_PANEL, height=height_of(shown))


def _mean_gain(
    gain: pd.DataFrame, side: str, variant: ShownVariant, scored: Scored, titles: Mapping[str, str]
) -> dict[str, object]:
    """The row of a method: the mean over institutions and runs, without one where it has no such counterpart."""
    values = gain.loc[gain["variant"] == variant.name, "mean"].to_numpy(dtype=np.float64)
    counterpart = variant.counterpart(side).name
    row: dict[str, object] = {"variant": variant.name, "method": variant.title}
    if not counterpart or not len(values):
        return row | {"mean": None, "gained": "no AUC" if counterpart else "no counterpart", "share": ""}
    difference = scored.difference(variant.name, counterpart, METRIC)
    better = int((values > 0).sum())
    share = ("equal", "equal in all runs")
    if not difference.nothing:
        share = (f"{better}/{len(values)}", f"{better} of {len(values)} institutions")
    return row | {
        "mean": round(difference.mean, 4), "gained": signed(difference.mean, difference.digits), "share": share[0],
        "better off": share[1], "counterpart": titles[counterpart], "runs": difference.counted,
        "95 % interval": difference.bounds if difference.known else "unknown",
    }  # fmt: skip
