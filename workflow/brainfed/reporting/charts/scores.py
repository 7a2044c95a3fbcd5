"""Scores as intervals: the answer in one picture, every method's mean, every method minus the reference."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from brainfed.cohort.class_words import DIAGNOSIS_WORDS, ClassWords
from brainfed.evaluation.scores import INSTITUTION
from brainfed.reporting.charts.intervals import IntervalRow, interval_panel
from brainfed.reporting.charts.style import Panel, shown_ones
from brainfed.reporting.intervals import Interval
from brainfed.reporting.metric_titles import METRIC_TITLES, SHOWN_METRICS
from brainfed.reporting.rounding import SIGNIFICANT, signed
from brainfed.reporting.scored import Scored
from brainfed.reporting.text.answer import Answer
from brainfed.reporting.text.baselines import MethodBeside
from brainfed.reporting.variants import Groups, ShownVariant, by_family, places

CHANCE = 0.5
DEFAULT = places()
"""Words and colours of a cohort of patients and controls."""
NAMED, PANEL = 700, 330
"""Pixels of the axis of the one panel of the answer, and of each of two panels."""


def headline_chart(
    answer: Answer, beside: Sequence[MethodBeside] = (), words: ClassWords = DIAGNOSIS_WORDS
) -> alt.TopLevelMixin | None:
    """The answer's methods on one axis, the highest AUC first, in the colour of the place where they train.

    Args:
        answer: the chosen methods.
        beside: methods that stand beside their baselines on every page, if they were run.
        words: nouns of the cohort.
    """
    scores = _headline_rows(answer, beside)
    if not scores:
        return None
    groups = places(words, unseen=answer.unseen)
    rows = [
        IntervalRow(variant, score, variant.place, score.text, title=f"{groups[variant.place][0]}: {variant.title}")
        for variant, score in scores
    ]
    title = "AUC, mean over institutions and tests, with its corrected 95 % interval"
    panel = interval_panel(rows, title, groups, width=NAMED, zero=CHANCE, zero_title="chance", named=True, legend=False)
    return panel.add_params(shown_ones()[0])


def forest_chart(
    scored: Scored, variants: Sequence[ShownVariant], reference: str, groups: Groups = DEFAULT, classes: int = 2
) -> alt.TopLevelMixin:
    """Mean AUC and accuracy of every variant with corrected intervals, by family.

    Args:
        scored: the runs.
        variants: in any order.
        reference: reference variant of the tests.
        groups: places of training.
        classes: their number; the dotted line of the accuracy is one over it.
    """
    shown = by_family(variants)
    panels = []
    for number, metric in enumerate(SHOWN_METRICS):
        scores = {variant.name: scored.interval(variant.name, metric) for variant in shown}
        runs = max(score.runs for score in scores.values())
        panels.append(
            interval_panel(
                [IntervalRow(one, scores[one.name], one.place, scores[one.name].text) for one in shown],
                f"{METRIC_TITLES[metric]} (mean of {runs} runs)",
                groups,
                width=PANEL,
                zero=CHANCE if metric == "auc" else 1 / classes,
                reference=scores[reference].mean if reference in scores else None,
                named=number == 0,
            )
        )
    return _beside(panels)


def differences_chart(
    tests: pd.DataFrame, variants: Sequence[ShownVariant], runs: int, groups: Groups = DEFAULT
) -> alt.TopLevelMixin | None:
    """Every variant minus the reference, AUC and accuracy, with corrected intervals; None for one method alone.

    Args:
        tests: variant, metric, scope, difference, ci_low, ci_high, p_holm.
        variants: in any order; the reference has no row.
        runs: number of test folds over all repeats.
        groups: places of training.
    """
    chosen = tests[tests["scope"] == INSTITUTION]
    shown = [variant for variant in by_family(variants) if (chosen["variant"] == variant.name).any()]
    if not shown:
        return None
    panels = []
    for number, metric in enumerate(SHOWN_METRICS):
        held = chosen[chosen["metric"] == metric].set_index("variant").to_dict("index")
        rows = []
        for variant in shown:
            test = held[variant.name]
            found = Interval(float(test["difference"]), float(test["ci_low"]), float(test["ci_high"]), runs)
            holds = float(test["p_holm"]) < SIGNIFICANT
            text = signed(found.mean, found.digits) + (" *" if holds else "")
            rows.append(IntervalRow(variant, found, variant.place, text, hollow=not holds))
        title = f"difference in {METRIC_TITLES[metric]}"
        panels.append(interval_panel(rows, title, groups, width=PANEL, zero=0, named=number == 0))
    return _beside(panels)


def _beside(panels: Sequence[Panel]) -> alt.TopLevelMixin:
    return alt.hconcat(*panels, spacing=62).add_params(shown_ones()[0])


def _headline_rows(answer: Answer, beside: Sequence[MethodBeside]) -> list[tuple[ShownVariant, Interval]]:
    """Variants and scores, the highest mean first."""
    if answer.chosen is None or answer.score is None:
        return []
    shown = [(answer.chosen, answer.score), *((one.other, one.score) for one in answer.comparisons)]
    for result in beside:
        shown += [(result.variant, result.score), *((one.variant, one.score) for one in result.baselines)]
    once = {variant.name: (variant, score) for variant, score in shown}
    return sorted(once.values(), key=lambda row: -row[1].mean)
