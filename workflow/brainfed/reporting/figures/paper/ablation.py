"""Effect of each part: accuracy and AUC of variants, with the paper's number for each (FedNI Fig. 2 to 4)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from brainfed.reporting.figures.interval_rows import interval_row, paint_labels, text_column
from brainfed.reporting.figures.paper.printed import NOTHING_PRINTED, Printed
from brainfed.reporting.figures.style import (
    FAINT,
    INK,
    PAPER,
    WIDE,
    headed,
    horizontal_rows,
    key_below,
    new_figure,
    paper_mark,
)
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.page_tests import PageTests
from brainfed.reporting.rounding import signed
from brainfed.reporting.scored import Scored, significant

METRICS = (("accuracy", "accuracy"), ("auc", "AUC"))


def ablation_figure(outline: ExperimentOutline, scored: Scored, printed: Printed = NOTHING_PRINTED) -> Figure:
    """A row a variant in the order of the config; numbers to the right: mean, difference to the reference."""
    shown = outline.variants
    others = [variant.name for variant in shown if variant.name != outline.reference]
    has_printed = any(variant.name in printed for variant in shown)
    compared = PageTests(scored, shown, outline.reference)
    figure = new_figure(WIDE, 1.35 + 0.31 * len(shown) + 0.2 * has_printed)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (metric, title) in zip(panels, METRICS, strict=True):
        differences = compared.differences(outline.reference, others, metric) if others else {}
        texts = []
        for row, variant in enumerate(shown):
            found = scored.interval(variant.name, metric)
            interval_row(axes, row, found, variant.colour, size=6)
            if variant.name in printed and metric == "accuracy":
                value = printed[variant.name].value
                axes.plot(value, row + 0.24, "D", markersize=5.5, markerfacecolor="none", markeredgecolor=PAPER)
            text = found.text
            if variant.name in differences:
                difference, p = differences[variant.name]
                text += f"   {signed(difference.mean, difference.digits)}{' *' if significant(p) else ''}"
            texts.append(text)
        axes.axvline(scored.interval(outline.reference, metric).mean, color=INK, linewidth=0.8, alpha=0.5)
        axes.set_xlabel(f"{title}, mean over institutions and runs")
        axes.margins(x=0.08)
        axes.grid(axis="x")
        text_column(axes, texts, range(len(texts)), head=f"mean    minus {_short(outline)}")
    horizontal_rows(panels[0], [variant.title for variant in shown])
    paint_labels(panels[0], [variant.colour for variant in shown])
    panels[1].tick_params(axis="y", length=0)
    panels[1].spines["left"].set_visible(False)
    headed(figure, ablation_finding(outline, scored))
    reference = Line2D([], [], color=INK, alpha=0.5, linewidth=0.8, label=f"the mean of {_short(outline)}")
    ours = Line2D([], [], marker="o", color=FAINT, label="ours, with its corrected 95 % interval")
    key_below(figure, [ours, reference, *([paper_mark("printed in the paper")] if has_printed else [])])
    return figure


def ablation_finding(outline: ExperimentOutline, scored: Scored) -> str:
    """The variants that differ significantly from the reference after correction, in one line."""
    titles = {variant.name: variant.title for variant in outline.variants if variant.name != outline.reference}
    if not titles:
        return f"{_short(outline)} has nothing to be compared with"
    compared = PageTests(scored, outline.variants, outline.reference)
    outcomes = {}
    for metric, name in METRICS:
        tests = compared.differences(outline.reference, list(titles), metric)
        if not any(np.isfinite(p) for _, p in tests.values()):
            return f"Too few runs to test anything against {_short(outline)}"
        above = [titles[variant] for variant, (found, p) in tests.items() if significant(p) and found.mean > 0]
        below = [titles[variant] for variant, (found, p) in tests.items() if significant(p) and found.mean < 0]
        outcomes[name.capitalize() if name.islower() else name] = _outcome(above, below, _short(outline))
    if len(set(outcomes.values())) == 1:
        return f"Accuracy and AUC: {outcomes['AUC']}"
    return "; ".join(f"{name}: {outcome}" for name, outcome in outcomes.items())


def _outcome(above: Sequence[str], below: Sequence[str], reference: str) -> str:
    if not above and not below:
        return f"nothing differs significantly from {reference}"
    said = [f"{_counted(above)} significantly above {reference}"] if above else []
    if below:
        said.append(f"{_counted(below)} significantly below" + ("" if above else f" {reference}"))
    return ", ".join(said)


def _counted(titles: Sequence[str]) -> str:
    return " and ".join(titles) if len(titles) < 3 else f"{len(titles)} variants"


def _short(outline: ExperimentOutline) -> str:
    return outline.variant(outline.reference).title
