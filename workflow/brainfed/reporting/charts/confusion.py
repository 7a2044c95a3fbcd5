"""Confusion matrices of all methods in one chart: one row a method, one cell a true and a predicted class."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from brainfed.cohort.class_words import DIAGNOSIS_WORDS, ClassWords
from brainfed.evaluation.pooled.confusion import confusion_table
from brainfed.evaluation.predictions import class_names
from brainfed.reporting.charts.style import height_of, shown_ones, tooltip
from brainfed.reporting.figures.style import COLD
from brainfed.reporting.rounding import rounded
from brainfed.reporting.variants import ShownVariant, by_family

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
