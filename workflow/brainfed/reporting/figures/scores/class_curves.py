"""ROC curves and calibration of three classes and more: one panel a variant, one curve a class against the rest."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from brainfed.cohort.class_words import ClassWords
from brainfed.evaluation.calibration import brier_scores, calibration_curve
from brainfed.evaluation.predictions import against_rest
from brainfed.evaluation.roc import mean_roc
from brainfed.reporting.figures.scores.panels import broken, unit_panels
from brainfed.reporting.figures.style import RULE, class_colours, key_below, note_figure
from brainfed.reporting.variants import ShownVariant, by_family


def class_roc_figure(predictions: pd.DataFrame, variants: Sequence[ShownVariant], words: ClassWords) -> Figure:
    """Mean ROC curve of every class against the rest, pooled over institutions, and the mean of their areas.

    Args:
        predictions: variant, repeat, fold, label, one score a class.
        variants: all variants of the experiment.
        words: names of the classes.
    """
    shown = by_family(variants)
    figure, panels = unit_panels(len(shown))
    for variant, axes in zip(shown, panels, strict=True):
        own = predictions[predictions["variant"] == variant.name]
        curves = {code: mean_roc(against_rest(own, code)) for code in words.shown}
        _square(axes, variant)
        for code, curve in curves.items():
            axes.plot(curve.fpr, curve.tpr, color=class_colours(words.count)[code], linewidth=1.1)
        area = float(np.mean([np.trapezoid(curve.tpr, curve.fpr) for curve in curves.values()]))
        _number(axes, f"AUC {area:.2f}" if np.isfinite(area) else "no AUC", variant)
    _key(figure, words)
    figure.supxlabel("false-positive rate (1 \u2212 specificity)", fontsize=8.5)
    figure.supylabel("true-positive rate (sensitivity)", fontsize=8.5)
    return figure


def class_calibration_figure(predictions: pd.DataFrame, variants: Sequence[ShownVariant], words: ClassWords) -> Figure:
    """Share of every class against its predicted probability, and the mean Brier score of the classes.

    Args:
        predictions: variant, kind, label, one score a class; margins are no probabilities.
        variants: all variants of the experiment.
        words: names of the classes.
    """
    known = set(predictions.loc[predictions["kind"] == "probability", "variant"])
    shown = [variant for variant in by_family(variants) if variant.name in known]
    if not shown:
        return note_figure("no method of this experiment gives probabilities")
    figure, panels = unit_panels(len(shown))
    for variant, axes in zip(shown, panels, strict=True):
        own = predictions[predictions["variant"] == variant.name]
        _square(axes, variant)
        questions = {code: against_rest(own, code) for code in words.shown}
        for code, part in questions.items():
            curve, colour = calibration_curve(part), class_colours(words.count)[code]
            axes.plot(curve["mean_score"], curve["fraction_patients"], color=colour, linewidth=1, marker=".")
        brier = float(np.mean([brier_scores(part)["brier"].iloc[0] for part in questions.values()]))
        _number(axes, f"Brier {brier:.2f}", variant)
    _key(figure, words)
    figure.supxlabel("predicted probability of a class", fontsize=8.5)
    figure.supylabel("share of its subjects", fontsize=8.5)
    return figure


def _square(axes: Axes, variant: ShownVariant) -> None:
    axes.plot([0, 1], [0, 1], color=RULE, linewidth=0.8)
    axes.set_title(broken(variant.title), color=variant.colour, fontsize=7.5)


def _number(axes: Axes, text: str, variant: ShownVariant) -> None:
    axes.text(0.97, 0.05, text, ha="right", color=variant.colour, fontweight="bold", fontsize=7.5)


def _key(figure: Figure, words: ClassWords) -> None:
    colours = class_colours(words.count)
    key_below(figure, [Line2D([], [], color=colours[code], label=words.short[code]) for code in words.shown], 8)
