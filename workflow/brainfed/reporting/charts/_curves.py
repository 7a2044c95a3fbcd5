"""Curves of all methods in one panel: few in colour, all others in grey, the one under the pointer in ink."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd

from brainfed.cohort import DIAGNOSIS_WORDS, ClassWords
from brainfed.evaluation import (
    INSTITUTION,
    MeanRoc,
    against_rest,
    brier_scores,
    calibration_curve,
    class_names,
    confusion_table,
    mean_roc,
    sensitivities,
)
from brainfed.reporting import COLD, Groups, Scored, ShownVariant, by_family, class_colours, interval, places, rounded
from brainfed.reporting.charts._scores import DEFAULT, PANEL
from brainfed.reporting.charts._style import IntervalRow, Panel, height_of, interval_panel, shown_ones, tooltip

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


# ROC curves of all methods in one chart: those of the answer in colour, all others grey until a pointer meets them.

SQUARE = 400
"""Pixels of each side."""
FPR, TPR = "false-positive rate (1 \u2212 specificity)", "true-positive rate (sensitivity)"
STEP = 2
"""Every so many points of a curve are drawn: 0.02 apart."""


def roc_chart(
    predictions: pd.DataFrame,
    variants: Sequence[ShownVariant],
    front: Sequence[ShownVariant],
    scored: Scored,
    words: ClassWords = DIAGNOSIS_WORDS,
    groups: Groups | None = None,
) -> alt.TopLevelMixin | None:
    """Mean ROC curve of every variant over institutions and runs; of classes beyond two, the mean against the rest.

    Args:
        predictions: variant, repeat, fold, institution, label and one score, or one a class.
        variants: all variants of the experiment.
        front: those in colour, with one standard deviation over runs.
        scored: the runs, whose AUCs stand beside the curves.
        words: names of the classes.
        groups: places of training; None: those of the words.
    """
    found = {
        variant.name: _curves(predictions[predictions["variant"] == variant.name], words)
        for variant in by_family(variants)
    }
    shown = [variant for variant in by_family(variants) if all(curve.runs for curve in found[variant.name].values())]
    if not shown:
        return None
    means = {name: _mean(list(curves.values())) for name, curves in found.items()}
    titles = {one.name: f"AUC {scored.interval(one.name, 'auc').text}" for one in shown}
    data = pd.concat([_points(one, means[one.name], titles[one.name]) for one in shown], ignore_index=True)
    curves = curves_chart(
        Curves(data, "fpr", "tpr", ("method", "score"), "low", "high"), shown, front, titles, SQUARE,
        across("fpr", FPR), upwards("tpr", TPR), groups or places(words),
    )  # fmt: skip
    if words.count > 2 and front and front[0] in shown:
        beside = alt.hconcat(curves, _by_class(front[0], found[front[0].name], words, scored), spacing=40)
        return beside.add_params(shown_ones()[0])
    return curves.add_params(shown_ones()[0])


def _curves(predictions: pd.DataFrame, words: ClassWords) -> dict[int, MeanRoc]:
    """Code of a class -> its curve against the rest; of two classes the one of patients."""
    if words.count == 2:
        return {1: mean_roc(predictions)}
    return {code: mean_roc(against_rest(predictions, code)) for code in words.shown}


def _mean(curves: Sequence[MeanRoc]) -> MeanRoc:
    """The mean curve of the classes; its standard deviation is known for one curve alone."""
    if len(curves) == 1:
        return curves[0]
    tpr = np.mean([curve.tpr for curve in curves], axis=0)
    return MeanRoc(curves[0].fpr, tpr, np.full(len(tpr), np.nan), min(curve.runs for curve in curves))


def _points(variant: ShownVariant, curve: MeanRoc, score: str) -> pd.DataFrame:
    kept = [0, *range(1, len(curve.fpr), STEP)]
    tpr, reach = curve.tpr[kept], np.nan_to_num(curve.sd[kept])
    return pd.DataFrame(
        {
            "variant": variant.name,
            "method": variant.title,
            "score": score,
            "fpr": curve.fpr[kept].round(3),
            "tpr": tpr.round(3),
            "low": np.clip(tpr - reach, 0, 1).round(3),
            "high": np.clip(tpr + reach, 0, 1).round(3),
        }
    )


def _by_class(variant: ShownVariant, curves: Mapping[int, MeanRoc], words: ClassWords, scored: Scored) -> alt.Chart:
    """The curves of every class of one method."""
    colours = class_colours(words.count)
    scores = {code: scored.interval(variant.name, f"auc:{words.short[code]}") for code in curves}
    titles = {code: f"{words.short[code]}: AUC {score.text}" for code, score in scores.items()}
    data = pd.concat(
        [_points(variant, curve, titles[code]).assign(method=words.short[code]) for code, curve in curves.items()]
    )
    scale = alt.Scale(domain=list(titles.values()), range=[colours[code] for code in titles])
    chart: alt.Chart = (
        alt.Chart(data, title=f"{variant.title}, every class against the rest")
        .mark_line(strokeWidth=2)
        .encode(
            x=across("fpr", FPR), y=upwards("tpr", TPR), tooltip=["score:N"],
            color=alt.Color("score:N", scale=scale, legend=alt.Legend(title=None, orient="right")),
        )
        .properties(width=SQUARE, height=SQUARE)
    )  # fmt: skip
    return chart


# Calibration: predicted probability against the share of patients, with intervals.


def calibration_chart(
    predictions: pd.DataFrame,
    variants: Sequence[ShownVariant],
    front: Sequence[ShownVariant],
    words: ClassWords = DIAGNOSIS_WORDS,
    groups: Groups | None = None,
) -> alt.TopLevelMixin | None:
    """Share of patients (label 1) against predicted probability, with the Brier score; None without probabilities.

    Of three classes and more every class against the rest counts, and the Brier score is their mean.

    Args:
        predictions: variant, repeat, kind, label and one score, or one a class; margins are no probabilities.
        variants: all variants of the experiment.
        front: those in colour, with 95 % intervals.
        words: names of the classes.
        groups: places of training; None: those of the words.
    """
    parts = [predictions] if words.count == 2 else [against_rest(predictions, code) for code in words.shown]
    brier = pd.concat([brier_scores(part) for part in parts]).groupby("variant")["brier"].mean()
    shown = [variant for variant in by_family(variants) if variant.name in brier.index]
    if not shown:
        return None
    data = calibration_curve(pd.concat(parts), rows=len(parts)).rename(
        columns={"mean_score": "x", "fraction_patients": "share", "low": "bottom", "high": "top"}
    )
    data = data[data["variant"].isin([one.name for one in shown])].round(3)
    titles = {one.name: f"Brier {rounded(float(brier[one.name]), 2)}" for one in shown}
    table = data.assign(
        method=data["variant"].map({one.name: one.title for one in shown}),
        Brier=data["variant"].map(titles),
        people=data["subjects"].round().astype(np.int64).astype(str),
    )
    own = words.many[1] if words.count == 2 else f"{words.subjects} of a class"
    table["bin"] = [
        f"predicted {rounded(x, 2)}, found {rounded(share, 2)} [{rounded(low, 2)}, {rounded(high, 2)}]"
        for x, share, low, high in table[["x", "share", "bottom", "top"]].itertuples(index=False)
    ]
    one = f"of being a {words.singular[1]}" if words.count == 2 else "of a class"
    chart = curves_chart(
        Curves(table, "x", "share", ("method", "Brier", "bin", "people"), "bottom", "top", bars=True),
        shown, front, titles, SQUARE, across("x", f"predicted probability {one}"),
        upwards("share", f"share that are {own}"), groups or places(words),
    )  # fmt: skip
    return chart.add_params(shown_ones()[0])


# Confusion matrices of all methods in one chart: one row a method, one cell a true and a predicted class.

CELL = 150
"""Pixels of a cell of two classes; those of more classes are narrower."""
WIDEST = 640
MIDDLE = 0.55
"""Share above which the number in a cell is white."""


def confusion_chart(
    predictions: pd.DataFrame, variants: Sequence[ShownVariant], words: ClassWords = DIAGNOSIS_WORDS
) -> alt.TopLevelMixin:
    """Share of every true class that a method predicts as each class, over all runs.

    Args:
        predictions: variant, repeat, label and the scores.
        variants: all variants of the experiment.
        words: names of the classes.
    """
    repeats = int(predictions["repeat"].nunique())
    found = confusion_table(predictions)
    short = {name: _short(words, code) for code, name in enumerate(class_names(predictions))}
    order = list(reversed(short))
    titles = {variant.name: variant.title for variant in by_family(variants)}
    table = pd.DataFrame(
        {
            "variant": found["variant"],
            "method": found["variant"].map(titles),
            "truth": "truly " + found["label"].map(short),
            "true": found["label"].map(short),
            "predicted": found["predicted"].map(short),
            "part": found["share"].round(4),
            "share": [f"{rounded(100 * share, 0)} %" for share in found["share"]],
            "people": [f"{rounded(count / repeats, 0)} a repeat" for count in found["predictions"]],
        }
    )
    _, kept = shown_ones()
    classes = [short[name] for name in order]
    width = min(CELL, WIDEST // len(classes) ** 2)
    base = alt.Chart(table).transform_filter(kept)
    x = alt.X("predicted:N", sort=classes, axis=alt.Axis(orient="top", title="predicted as", labelAngle=0))
    y = alt.Y("method:N", sort=list(titles.values()), axis=alt.Axis(title=None, labelPadding=8))
    cells = base.mark_rect().encode(
        x=x, y=y, tooltip=tooltip("method", "true", "predicted", "share", "people"),
        color=alt.Color("part:Q", scale=alt.Scale(domain=[0, 1], range=["#eef2f7", COLD]), legend=None),
    )  # fmt: skip
    numbers = base.mark_text().encode(
        x=x, y=y, text="share:N",
        color=alt.condition(f"datum.part > {MIDDLE}", alt.value("white"), alt.value("#1d2228")),
    )  # fmt: skip
    parts = alt.layer(cells, numbers).properties(width=width * len(classes), height=height_of(list(titles)))
    header = alt.Header(title=None, labelAnchor="start")
    truths = [f"truly {name}" for name in classes]
    return parts.facet(column=alt.Column("truth:N", sort=truths, header=header), spacing=18).add_params(shown_ones()[0])


def _short(words: ClassWords, code: int) -> str:
    return words.many[code] if words.count == 2 else words.short[code]


# Sensitivity at a fixed specificity, of every method.

SPECIFICITIES = (0.8, 0.95)
SPACING = 62
"""Pixels between the panels."""


def operating_chart(
    predictions: pd.DataFrame,
    variants: Sequence[ShownVariant],
    ratio: float,
    groups: Groups = DEFAULT,
) -> alt.TopLevelMixin | None:
    """Mean sensitivity at two specificities with corrected intervals; None without a run of both classes.

    Args:
        predictions: variant, repeat, fold, institution, score, label of two classes.
        variants: all variants of the experiment.
        ratio: n_test / n_train of a run.
        groups: places of training.
    """
    panels = []
    for number, specificity in enumerate(SPECIFICITIES):
        runs = sensitivities(predictions, specificity).assign(metric="sensitivity", scope=INSTITUTION)
        shown = [variant for variant in by_family(variants) if (runs["variant"] == variant.name).any()]
        if not shown:
            return None
        found = {variant.name: interval(runs, variant.name, "sensitivity", ratio) for variant in shown}
        rows = [IntervalRow(one, found[one.name], one.place, rounded(found[one.name].mean, 2)) for one in shown]
        chance = 1 - specificity
        panels.append(
            interval_panel(
                rows, f"sensitivity at a specificity of {rounded(specificity, 2)}", groups, width=PANEL,
                zero=chance, named=number == 0,
            )
        )  # fmt: skip
    return alt.hconcat(*panels, spacing=SPACING).add_params(shown_ones()[0])
