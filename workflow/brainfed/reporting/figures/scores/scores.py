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
from brainfed.reporting.rounding import SIGNIFICANT, signed
from brainfed.reporting.scored import Scored
from brainfed.reporting.text.answer import Answer
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
PLACES = {"central": ("pooled data", "#0072b2"), "federated": ("federated", "#bf5300"), "local": ("alone", "#007a5a"),
          "public": ("public subjects", FAINT)}  # fmt: skip
"""Topology of a method -> its words and colour on the first screen."""


def headline_figure(answer: Answer, result: FedNIResult | None = None, words: ClassWords = DIAGNOSIS_WORDS) -> Figure:
    """The answer's methods on one axis, the highest AUC first, in the colour of the place where they train.

    Args:
        answer: the chosen methods.
        result: FedNI and its baselines, if they were run.
        words: nouns of the cohort.
    """
    rows = _headline_rows(answer, result)
    places = {**PLACES, "baseline": (f"no {words.unread}", FAINT)}
    if answer.unseen:
        places["local"] = ("other sites\u2019 models, averaged", places["local"][1])
    figure = new_figure(WIDE, 0.62 + 0.3 * max(len(rows), 1))
    axes = figure.add_subplot()
    colours = [places[_place(variant)][1] for variant, _ in rows]
    for row, ((_, score), colour) in enumerate(zip(rows, colours, strict=True)):
        interval_row(axes, row, score, colour, size=8)
    horizontal_rows(axes, [f"{places[_place(variant)][0]}: {variant.title}" for variant, _ in rows])
    paint_labels(axes, colours)
    low = min([0.5, *(score.low if np.isfinite(score.low) else score.mean for _, score in rows)])
    high = max([0.75, *(score.high if np.isfinite(score.high) else score.mean for _, score in rows)])
    axes.set_xlim(low - 0.015, high + 0.015)
    axes.axvline(0.5, color=FAINT, linewidth=0.8, linestyle=(0, (1, 2)))
    axes.annotate(
        "chance", (0.5, 1), (3, 2), xycoords=("data", "axes fraction"), textcoords="offset points", color=FAINT,
        fontsize=7.5,
    )  # fmt: skip
    axes.set_xlabel("AUC, mean over institutions and runs, with its corrected 95 % interval")
    axes.grid(axis="x")
    value_column(axes, [score for _, score in rows])
    return figure


def _headline_rows(answer: Answer, result: FedNIResult | None) -> list[tuple[ShownVariant, Interval]]:
    """Variants and scores, the highest mean first."""
    if answer.chosen is None or answer.score is None:
        return []
    shown = [(answer.chosen, answer.score), *((one.other, one.score) for one in answer.comparisons)]
    if result is not None:
        shown += [(result.fedni, result.score), *((one.variant, one.score) for one in result.baselines)]
    once = {variant.name: (variant, score) for variant, score in shown}
    return sorted(once.values(), key=lambda row: -row[1].mean)


def _place(variant: ShownVariant) -> str:
    """Where a variant trains: a key of `PLACES`, or `baseline`."""
    if variant.family == "baseline":
        return "baseline"
    if variant.topology == "central" and not variant.pools:
        return "public"
    return variant.topology or ("federated" if variant.family == "federated" else "central")


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
