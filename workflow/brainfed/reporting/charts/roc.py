"""ROC curves of all methods in one chart: those of the answer in colour, all others grey until a pointer meets them."""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from brainfed.cohort.class_words import DIAGNOSIS_WORDS, ClassWords
from brainfed.evaluation.pooled.roc import MeanRoc, mean_roc
from brainfed.evaluation.predictions import against_rest
from brainfed.reporting.charts.curves import Curves, across, curves_chart, upwards
from brainfed.reporting.charts.style import shown_ones
from brainfed.reporting.figures.style import class_colours
from brainfed.reporting.scored import Scored
from brainfed.reporting.variants import Groups, ShownVariant, by_family, places

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
