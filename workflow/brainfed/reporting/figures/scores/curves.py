"""Small multiples, one panel a variant: ROC curves and calibration."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brainfed.cohort.class_words import DIAGNOSIS_WORDS, ClassWords
from brainfed.evaluation.calibration import brier_scores, calibration_curve
from brainfed.evaluation.roc import MeanRoc, mean_roc
from brainfed.reporting.figures.scores.class_curves import class_calibration_figure, class_roc_figure
from brainfed.reporting.figures.scores.panels import broken, unit_panels
from brainfed.reporting.figures.style import FAINT, RULE, note_figure
from brainfed.reporting.variants import ShownVariant, by_family


def roc_figure(
    predictions: pd.DataFrame,
    variants: Sequence[ShownVariant],
    reference: str,
    words: ClassWords = DIAGNOSIS_WORDS,
) -> Figure:
    """Mean ROC curve of every variant, pooled over institutions, and one standard deviation over runs.

    Args:
        predictions: variant, repeat, fold, score, label.
        variants: all variants of the experiment.
        reference: its curve is repeated in grey in every panel.
        words: names of the classes.
    """
    if words.count > 2:
        return class_roc_figure(predictions, variants, words)
    curves = {str(name): mean_roc(part) for name, part in predictions.groupby("variant", sort=False)}
    shown = [variant for variant in by_family(variants) if curves[variant.name].runs]
    if not shown:
        return note_figure(f"no run has {words.many[1]} and {words.many[0]} among its test subjects")
    figure, panels = unit_panels(len(shown))
    for variant, axes in zip(shown, panels, strict=True):
        _roc(axes, curves[variant.name], variant, curves.get(reference) if variant.name != reference else None)
    figure.supxlabel("false-positive rate (1 \u2212 specificity)", fontsize=8.5)
    figure.supylabel("true-positive rate (sensitivity)", fontsize=8.5)
    return figure


def _roc(axes: Axes, curve: MeanRoc, variant: ShownVariant, reference: MeanRoc | None) -> None:
    axes.plot([0, 1], [0, 1], color=RULE, linewidth=0.8)
    if reference is not None:
        axes.plot(reference.fpr, reference.tpr, color=FAINT, linewidth=0.9)
    reach = np.nan_to_num(curve.sd)
    axes.fill_between(
        curve.fpr, np.clip(curve.tpr - reach, 0, 1), np.clip(curve.tpr + reach, 0, 1), color=variant.colour, alpha=0.16,
        linewidth=0,
    )  # fmt: skip
    axes.plot(curve.fpr, curve.tpr, color=variant.colour)
    area = float(np.trapezoid(curve.tpr, curve.fpr))
    axes.text(0.97, 0.05, f"AUC {area:.2f}", ha="right", color=variant.colour, fontweight="bold", fontsize=7.5)
    axes.set_title(broken(variant.title), color=variant.colour, fontsize=7.5)


def calibration_figure(
    predictions: pd.DataFrame, variants: Sequence[ShownVariant], words: ClassWords = DIAGNOSIS_WORDS
) -> Figure:
    """Share of patients (label 1) against predicted probability, with the Brier score; margins are no probabilities.

    Args:
        predictions: variant, score, kind, label.
        variants: all variants of the experiment.
        words: names of the classes.
    """
    if words.count > 2:
        return class_calibration_figure(predictions, variants, words)
    curve = calibration_curve(predictions)
    brier = brier_scores(predictions).set_index("variant")["brier"]
    shown = [variant for variant in by_family(variants) if variant.name in brier.index]
    if not shown:
        return note_figure("no method of this experiment gives probabilities")
    figure, panels = unit_panels(len(shown))
    for variant, axes in zip(shown, panels, strict=True):
        part = curve[curve["variant"] == variant.name]
        axes.plot([0, 1], [0, 1], color=RULE, linewidth=0.8)
        axes.plot(part["mean_score"], part["fraction_patients"], color=variant.colour, linewidth=1)
        size = 6 + 90 * part["subjects"].to_numpy(dtype=np.float64) / float(part["subjects"].sum())
        axes.scatter(
            part["mean_score"], part["fraction_patients"], s=size, color=variant.colour, linewidths=0, clip_on=False
        )
        axes.text(
            0.97, 0.05, f"Brier {brier[variant.name]:.2f}", ha="right", color=variant.colour, fontweight="bold",
            fontsize=7.5, bbox={"facecolor": "white", "alpha": 0.85, "linewidth": 0, "pad": 0.6},
        )  # fmt: skip
        axes.set_title(broken(variant.title), color=variant.colour, fontsize=7.5)
    figure.supxlabel(f"predicted probability of being a {words.one[1]}", fontsize=8.5)
    figure.supylabel(f"share that are {words.many[1]}", fontsize=8.5)
    return figure
