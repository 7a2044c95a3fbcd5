"""Calibration: predicted probability against the share of patients, with intervals."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from brainfed.cohort.class_words import DIAGNOSIS_WORDS, ClassWords
from brainfed.evaluation.pooled.calibration import brier_scores, calibration_curve
from brainfed.evaluation.predictions import against_rest
from brainfed.reporting.charts.curves import Curves, across, curves_chart, upwards
from brainfed.reporting.charts.style import shown_ones
from brainfed.reporting.rounding import rounded
from brainfed.reporting.variants import Groups, ShownVariant, by_family, places

SQUARE = 400
"""Pixels of each side."""


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
    one = f"of being a {words.one[1]}" if words.count == 2 else "of a class"
    chart = curves_chart(
        Curves(table, "x", "share", ("method", "Brier", "bin", "people"), "bottom", "top", bars=True),
        shown, front, titles, SQUARE, across("x", f"predicted probability {one}"),
        upwards("share", f"share that are {own}"), groups or places(words),
    )  # fmt: skip
    return chart.add_params(shown_ones()[0])
