"""Curves of all methods in one panel: few in colour, all others in grey, the one under the pointer in ink."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd

from brainfed.cohort import DIAGNOSIS_WORDS, ClassWords
from brainfed.evaluation import (
    MeanRoc,
    against_rest,
    brier_scores,
    calibration_curve,
    class_names,
    confusion_table,
    mean_roc,
)
from brainfed.reporting import COLD, Groups, Scored, ShownVariant, by_family, class_colours, places, rounded
from brainfed.reporting.charts._style import FILTER, NOT_HIDDEN, Panel, coloured, height_of, tooltip

SQUARE = 400
"""Pixels of each side of a chart of shares."""
UNIT = alt.Scale(domain=[0, 1], nice=False)
TICKS = [0, 0.2, 0.4, 0.6, 0.8, 1]
HIT = 9
"""Width of the invisible line that a pointer meets."""


@dataclass(frozen=True)
class Curves:
    """Points of curves.

    Attributes:
        data: variant, method, and the columns below; one row a point, in the order of the line.
        x, y: axes with the columns of the curve.
        tip: columns of the tooltip.
        low, high: columns of its interval.
        bars: whether intervals are bars at points, or a band.
    """

    data: pd.DataFrame
    x: alt.X
    y: alt.Y
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


def curves_square(
    curves: Curves,
    shown: Sequence[ShownVariant],
    front: Sequence[ShownVariant],
    notes: Mapping[str, str],
    groups: Groups,
) -> Panel:
    """All curves in one square with its diagonal; arguments as of `curve_layers`."""
    square = alt.Chart(pd.DataFrame({"x": [0, 1], "y": [0, 1]}))
    diagonal = square.mark_line(strokeDash=[2, 3], strokeWidth=1).encode(x="x:Q", y="y:Q")
    layers = curve_layers(curves, shown, front, notes, groups)
    return alt.layer(diagonal, *layers).properties(width=SQUARE, height=SQUARE)


def curve_layers(
    curves: Curves,
    shown: Sequence[ShownVariant],
    front: Sequence[ShownVariant],
    notes: Mapping[str, str],
    groups: Groups,
) -> list[alt.Chart]:
    """All curves: grey ones, those in colour with their intervals, and the one under the pointer.

    Args:
        shown: the variants that have one.
        front: those in colour, if they have one.
        notes: variant -> words beside its name in the legend.
    """
    mine = [variant for variant in front if variant in shown]
    colours = {variant.name: variant.colour for variant in mine}
    titles = {variant.name: f"{groups[variant.place][0]}: {variant.title}, {notes[variant.name]}" for variant in mine}
    key = alt.Legend(
        title=None, orient="right", labelExpr=f"{titles}[datum.label]", symbolType="stroke", symbolOpacity=1
    )
    colour = coloured("variant", colours, key if mine else None)
    base = alt.Chart(curves.data).transform_filter(NOT_HIDDEN)
    grey = base.transform_filter(alt.FieldOneOfPredicate("variant", [each.name for each in shown if each not in mine]))
    chosen = base.transform_filter(alt.FieldOneOfPredicate("variant", list(colours)))
    pointed = alt.selection_point(on="pointerover", fields=["variant"], empty=False, clear="pointerout")
    x, y = curves.x, curves.y
    others = grey.mark_line(strokeWidth=1, opacity=0.45).encode(x=x, y=y, detail="variant:N")
    doubt = chosen.mark_rule(strokeWidth=1.5, opacity=0.6) if curves.bars else chosen.mark_area(opacity=0.15)
    doubt = doubt.encode(x=x, y=alt.Y(f"{curves.low}:Q"), y2=f"{curves.high}:Q", color=colour)
    lines = chosen.mark_line(strokeWidth=2, point={"size": 30} if curves.bars else False).encode(x=x, y=y, color=colour)
    over = base.mark_line(strokeWidth=2.5).encode(
        x=x, y=y, detail="variant:N", opacity=alt.condition(pointed, alt.value(1), alt.value(0))
    )
    hit = base.mark_line(strokeWidth=HIT, opacity=0).encode(x=x, y=y, detail="variant:N", tooltip=tooltip(*curves.tip))
    return [others, doubt, lines, over, hit.add_params(pointed)]


# ROC curves of all methods in one chart: those of the answer in colour, all others grey until a pointer meets them.

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
        front: those in colour, with one standard deviation over runs.
        scored: the runs, whose AUCs stand beside the curves.
        groups: places of training; None: those of the words.
    """
    roc = {each.name: _curves(predictions[predictions["variant"] == each.name], words) for each in by_family(variants)}
    shown = [variant for variant in by_family(variants) if all(curve.runs for curve in roc[variant.name].values())]
    if not shown:
        return None
    titles = {variant.name: f"AUC {scored.interval(variant.name, 'auc').text}" for variant in shown}
    points = [_points(variant, _mean(list(roc[variant.name].values())), titles[variant.name]) for variant in shown]
    curves = Curves(
        pd.concat(points, ignore_index=True),
        across("fpr", FPR),
        upwards("tpr", TPR),
        ("method", "score"),
        "low",
        "high",
    )
    chart = curves_square(curves, shown, front, titles, groups or places(words))
    if words.count == 2 or not front or front[0] not in shown:
        return chart.add_params(FILTER)
    classes = _by_class(front[0], roc[front[0].name], words, scored)
    return alt.hconcat(chart, classes, spacing=40).add_params(FILTER)


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
    return pd.DataFrame({
        "variant": variant.name, "method": variant.title, "score": score, "fpr": curve.fpr[kept].round(3),
        "tpr": tpr.round(3), "low": np.clip(tpr - reach, 0, 1).round(3), "high": np.clip(tpr + reach, 0, 1).round(3),
    })  # fmt: skip


def _by_class(variant: ShownVariant, curves: Mapping[int, MeanRoc], words: ClassWords, scored: Scored) -> alt.Chart:
    """The curves of every class of one method."""
    shades, colours, points = class_colours(words.count), {}, []
    for code, curve in curves.items():
        score = scored.interval(variant.name, f"auc:{words.short[code]}")
        title = f"{words.short[code]}: AUC {score.text}"
        colours[title] = shades[code]
        points.append(_points(variant, curve, title).assign(method=words.short[code]))
    lines = alt.Chart(pd.concat(points), title=f"{variant.title}, every class against the rest").mark_line(
        strokeWidth=2
    )
    chart: alt.Chart = lines.encode(
        x=across("fpr", FPR), y=upwards("tpr", TPR), tooltip=["score:N"],
        color=coloured("score", colours, alt.Legend(title=None, orient="right")),
    ).properties(width=SQUARE, height=SQUARE)  # fmt: skip
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
        front: those in colour, with 95 % intervals.
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
    data = data[data["variant"].isin([variant.name for variant in shown])].round(3)
    titles = {variant.name: f"Brier {rounded(float(brier[variant.name]), 2)}" for variant in shown}
    table = data.assign(
        method=data["variant"].map({variant.name: variant.title for variant in shown}),
        Brier=data["variant"].map(titles),
        people=data["subjects"].round().astype(np.int64).astype(str),
    )
    own = words.many[1] if words.count == 2 else f"{words.subjects} of a class"
    table["bin"] = [
        f"predicted {rounded(x, 2)}, found {rounded(share, 2)} [{rounded(low, 2)}, {rounded(high, 2)}]"
        for x, share, low, high in table[["x", "share", "bottom", "top"]].itertuples(index=False)
    ]
    what = f"of being a {words.singular[1]}" if words.count == 2 else "of a class"
    x, y = across("x", f"predicted probability {what}"), upwards("share", f"share that are {own}")
    curves = Curves(table, x, y, ("method", "Brier", "bin", "people"), "bottom", "top", bars=True)
    return curves_square(curves, shown, front, titles, groups or places(words)).add_params(FILTER)


# Confusion matrices of all methods in one chart: one row a method, one cell a true and a predicted class.

CELL = 150
"""Pixels of a cell of two classes; those of more classes are narrower."""
WIDEST = 640
MIDDLE = 0.55
"""Share above which the number in a cell is white."""


def confusion_chart(
    predictions: pd.DataFrame, variants: Sequence[ShownVariant], words: ClassWords = DIAGNOSIS_WORDS
) -> alt.TopLevelMixin:
    """Share of every true class that a method predicts as each class, over all runs."""
    repeats = int(predictions["repeat"].nunique())
    confusion = confusion_table(predictions)
    nouns = words.many if words.count == 2 else words.short
    short = {name: nouns[code] for code, name in enumerate(class_names(predictions))}
    titles = {variant.name: variant.title for variant in by_family(variants)}
    table = pd.DataFrame({
        "variant": confusion["variant"], "method": confusion["variant"].map(titles),
        "truth": "truly " + confusion["label"].map(short), "true": confusion["label"].map(short),
        "predicted": confusion["predicted"].map(short), "part": confusion["share"].round(4),
        "share": [f"{rounded(100 * share, 0)} %" for share in confusion["share"]],
        "people": [f"{rounded(count / repeats, 0)} a repeat" for count in confusion["predictions"]],
    })  # fmt: skip
    classes = list(reversed(short.values()))
    width = min(CELL, WIDEST // len(classes) ** 2)
    base = alt.Chart(table).transform_filter(NOT_HIDDEN)
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
    return parts.facet(column=alt.Column("truth:N", sort=truths, header=header), spacing=18).add_params(FILTER)
