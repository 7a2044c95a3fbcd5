"""Sensitivity at a fixed specificity, of every method."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from brainfed.evaluation.pooled.roc import sensitivities
from brainfed.evaluation.scores import INSTITUTION
from brainfed.reporting.charts.intervals import IntervalRow, interval_panel
from brainfed.reporting.charts.scores import DEFAULT, PANEL
from brainfed.reporting.charts.style import shown_ones
from brainfed.reporting.intervals import interval
from brainfed.reporting.rounding import rounded
from brainfed.reporting.variants import Groups, ShownVariant, by_family

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
