"""Scores as intervals: the answer in one picture, every method's mean, every method minus the reference."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brainfed.cohort.class_words import DIAGNOSIS_WORDS, ClassWords
from brainfed.evaluation.scores import INSTITUTION
from brainfed.reporting.figures.interval_rows import interval_row, paint_labels, text_column, value_column
from brainfed.reporting.figures.style import FAINT, INK, WIDE, horizontal_rows, new_figure, note_figure
from brainfed.reporting.intervals import Interval
from brainfed.reporting.page_tests import BASELINES
from brainfed.reporting.rounding import SIGNIFICANT, signed
from brainfed.reporting.scored import Scored
from brainfed.reporting.text.answer import ALONE, NO_IMAGING, POOLED, REFERENCE, TWIN_ALONE, TWIN_POOLED, Answer
from brainfed.reporting.text.baselines import FedNIResult
from brainfed.reporting.variants import FAMILY_TITLES, ShownVariant, by_family

METRIC_TITLES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "auc": "AUC",
    "precision": "precision",
    "recall": "recall",
    "specificity": "specificity",
    "f1": "F1",
}
SHOWN_METRICS = ("auc", "accuracy")


def headline_figure(answer: Answer, result: FedNIResult | None = None, words: ClassWords = DIAGNOSIS_WORDS) -> Figure:
    """The answer's methods on one axis: pooled data, the best federated method, an institution alone, no imaging.

    Args:
        answer: the chosen methods.
        result: FedNI and its baselines, for rows below the best federated method.
        words: nouns of the cohort.
    """
    rows = _headline_rows(answer, result, words)
    figure = new_figure(WIDE, 0.62 + 0.3 * max(len(rows), 1))
    axes = figure.add_subplot()
    for row, (_, variant, score) in enumerate(rows):
        interval_row(axes, row, score, variant.colour, size=8)
    horizontal_rows(axes, [f"{role}: {variant.title}" for role, variant, _ in rows])
    paint_labels(axes, [variant.colour for _, variant, _ in rows])
    low = min([0.5, *(score.low if np.isfinite(score.low) else score.mean for *_, score in rows)])
    high = max([0.75, *(score.high if np.isfinite(score.high) else score.mean for *_, score in rows)])
    axes.set_xlim(low - 0.015, high + 0.015)
    axes.axvline(0.5, color=FAINT, linewidth=0.8, linestyle=(0, (1, 2)))
    axes.annotate(
        "chance", (0.5, 1), (3, 2), xycoords=("data", "axes fraction"), textcoords="offset points", color=FAINT,
        fontsize=7.5,
    )  # fmt: skip
    axes.set_xlabel("AUC, mean over institutions and runs, with its corrected 95 % interval")
    axes.grid(axis="x")
    value_column(axes, [score for *_, score in rows])
    return figure


def _headline_rows(
    answer: Answer, result: FedNIResult | None, words: ClassWords
) -> list[tuple[str, ShownVariant, Interval]]:
    """Role, variant and score of each row, from the top."""
    alone = "other sites\u2019 models, averaged" if answer.unseen else "alone"
    names = {
        POOLED: "strongest, pooled data",
        TWIN_POOLED: "its twin, pooled data",
        TWIN_ALONE: f"its twin, {alone}",
        ALONE: f"strongest, {alone}",
        NO_IMAGING: f"no {words.unread}",
    }
    if answer.chosen is None or answer.score is None:
        return []
    above = _rows_of(answer, names, (POOLED, TWIN_POOLED, REFERENCE))
    below = [row for row in _rows_of(answer, names, (TWIN_ALONE, ALONE, NO_IMAGING)) if row not in above]
    shown = {answer.chosen.name, *(variant.name for _, variant, _ in (*above, *below))}
    asked: list[tuple[str, ShownVariant, Interval]] = []
    if result is not None:
        asked = [("generated nodes", result.fedni, result.score)]
        asked += [(BASELINES[one.variant.name], one.variant, one.score) for one in result.baselines]
    asked = [row for row in asked if row[1].name not in shown]
    leading = "best federated" if asked else "federated"
    return [*above, (leading, answer.chosen, answer.score), *asked, *below]


def _rows_of(answer: Answer, names: dict[str, str], roles: Sequence[str]) -> list[tuple[str, ShownVariant, Interval]]:
    """A row a compared variant, named by all its roles."""
    found = [comparison for role in roles if (comparison := answer.against(role)) is not None]
    return [
        (
            " and ".join(names.get(role, role) for role in comparison.roles if role in roles),
            comparison.other,
            comparison.score,
        )
        for comparison in {one.other.name: one for one in found}.values()
    ]


def forest_figure(
    scored: Scored, variants: Sequence[ShownVariant], reference: str, words: ClassWords = DIAGNOSIS_WORDS
) -> Figure:
    """Mean AUC and accuracy of every variant with corrected intervals, by family."""
    shown = by_family(variants)
    rows, heads = _family_rows(shown, words)
    figure = new_figure(WIDE, 0.75 + 0.235 * (rows[-1] + 1))
    for number, (axes, metric) in enumerate(zip(figure.subplots(1, 2, sharey=True), SHOWN_METRICS, strict=True)):
        scores = [scored.interval(variant.name, metric) for variant in shown]
        for row, variant, score in zip(rows, shown, scores, strict=True):
            interval_row(axes, row, score, variant.colour, size=5.5)
        _frame(axes, shown, rows, heads, first=number == 0)
        axes.axvline(0.5, color=FAINT, linewidth=0.8, linestyle=(0, (1, 2)))
        known = {variant.name: score.mean for variant, score in zip(shown, scores, strict=True)}
        if reference in known:
            axes.axvline(known[reference], color=INK, linewidth=0.8, alpha=0.5)
        axes.set_xlabel(f"{METRIC_TITLES[metric]} (mean of {max(score.runs for score in scores)} runs)")
        value_column(axes, scores, rows)
    return figure


def differences_figure(
    tests: pd.DataFrame, variants: Sequence[ShownVariant], words: ClassWords = DIAGNOSIS_WORDS
) -> Figure:
    """Every variant minus the reference, AUC and accuracy, with corrected intervals.

    Args:
        tests: variant, metric, scope, difference, ci_low, ci_high, p_holm.
        variants: in any order; the reference has no row.
        words: nouns of the cohort.
    """
    chosen = tests[tests["scope"] == INSTITUTION]
    shown = [variant for variant in by_family(variants) if (chosen["variant"] == variant.name).any()]
    if not shown:
        return note_figure("one method alone: there is nothing to compare it with")
    rows, heads = _family_rows(shown, words)
    figure = new_figure(WIDE, 0.75 + 0.235 * (rows[-1] + 1))
    for number, (axes, metric) in enumerate(zip(figure.subplots(1, 2, sharey=True), SHOWN_METRICS, strict=True)):
        held = chosen[chosen["metric"] == metric].set_index("variant").to_dict("index")
        notes = []
        for row, variant in zip(rows, shown, strict=True):
            test = held[variant.name]
            found = Interval(float(test["difference"]), float(test["ci_low"]), float(test["ci_high"]), 0)
            holds = float(test["p_holm"]) < SIGNIFICANT
            interval_row(axes, row, found, variant.colour, size=5.5, hollow=not holds)
            notes.append(signed(found.mean, found.digits) + (" *" if holds else ""))
        _frame(axes, shown, rows, heads, first=number == 0)
        axes.axvline(0, color=INK, linewidth=0.8, alpha=0.5)
        axes.set_xlabel(f"difference in {METRIC_TITLES[metric]}")
        text_column(axes, notes, rows)
    return figure


def _family_rows(shown: Sequence[ShownVariant], words: ClassWords) -> tuple[list[float], list[tuple[float, str, str]]]:
    """Row of every variant and (row, title, colour) of every family's heading."""
    rows: list[float] = []
    heads: list[tuple[float, str, str]] = []
    place, family = 0.0, ""
    for variant in shown:
        if variant.family != family:
            family = variant.family
            place += 0.3 if rows else 0.0
            heads.append((place, FAMILY_TITLES[family].replace("imaging", words.unread), variant.colour))
            place += 1
        rows.append(place)
        place += 1
    return rows, heads


def _frame(
    axes: Axes,
    shown: Sequence[ShownVariant],
    rows: Sequence[float],
    heads: Sequence[tuple[float, str, str]],
    *,
    first: bool,
) -> None:
    axes.set_ylim(rows[-1] + 0.6, -0.6)
    axes.set_yticks(list(rows), [variant.title for variant in shown])
    axes.tick_params(axis="y", length=0, labelleft=first)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    if first:
        paint_labels(axes, [INK] * len(shown))
        for row, title, colour in heads:
            axes.annotate(
                title, (0, row), (-6, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
                color=colour, fontweight="bold", ha="right", va="center", fontsize=8,
            )  # fmt: skip
