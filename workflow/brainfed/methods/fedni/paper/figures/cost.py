"""Cost of both phases beside the paper's: operations, parameters, seconds (FedNI Table VI)."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from brainfed.methods.fedni.paper.numbers import FEDNI_FULL, FEDNI_TABLE_VI
from brainfed.methods.fedni.paper.phase_costs import PhaseCost, phase_costs
from brainfed.methods.fedni.paper.printed import as_in_the_paper, printed_row
from brainfed.reporting.figures.style import (
    INK,
    PAPER,
    SERIES,
    WIDE,
    headed,
    horizontal_rows,
    key_below,
    new_figure,
    note_figure,
    paper_mark,
)
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.rounding import rounded
from brainfed.reporting.tables.exchanges import readable, readable_seconds

PHASES = {"inpainting": "network inpainting", "classifier": "classifier"}
PANELS = {
    "operations": "operations: one pass of generator\nor classifier over a graph",
    "parameters": "parameters an institution trains\n(with the discriminator's)",
    "seconds": "training time of one run\n(seconds)",
}


def cost_figure(outline: ExperimentOutline) -> Figure:
    """Two rows a variant, three panels on logarithmic axes, every number next to its mark."""
    shown = [variant for variant in outline.variants if variant.fused]
    if not shown:
        return note_figure("no method of this experiment generates nodes")
    compared = [variant for variant in shown if as_in_the_paper(outline) and printed_row(variant) is FEDNI_FULL]
    costs = [(variant, cost) for variant in shown for cost in phase_costs(outline, variant)]
    figure = new_figure(WIDE, 1.45 + 0.52 * len(costs))
    panels = figure.subplots(1, 3, sharey=True)
    for axes, (key, title) in zip(panels, PANELS.items(), strict=True):
        for row, (variant, cost) in enumerate(costs):
            printed = FEDNI_TABLE_VI[cost.phase][key] if variant in compared else None
            _marks(axes, row, key, float(getattr(cost, key)), printed)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: readable(value)))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(title)
        axes.margins(x=0.3)
        axes.grid(axis="x")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
    horizontal_rows(panels[0], [f"{variant.title}:\n{PHASES[cost.phase]}" for variant, cost in costs])
    headed(figure, _finding(shown[0].title, [cost for variant, cost in costs if variant is shown[0]]))
    ours = Line2D([], [], marker="o", linestyle="", color=SERIES[0][0], label="ours")
    paper = paper_mark("FedNI in the paper: 7,381 features, 200 subjects an institution, a server with 8 GeForce 3090")
    key_below(figure, [ours, paper] if compared else [ours])
    return figure


def _marks(axes: Axes, row: float, key: str, ours: float, printed: float | None) -> None:
    """Ours and the paper's, the numbers of ours above and of the paper's below the row."""
    axes.plot(ours, row, "o", color=SERIES[0][0], markersize=6.5)
    _number(axes, ours, row, key, SERIES[0][0], 7)
    if printed is not None:
        axes.plot([ours, printed], [row, row], color=SERIES[0][0], alpha=0.4, linewidth=1)
        axes.plot(printed, row, "D", markersize=5.5, markerfacecolor="white", markeredgecolor=PAPER)
        _number(axes, printed, row, key, INK, -13)


def _number(axes: Axes, value: float, row: float, key: str, colour: str, up: float) -> None:
    text = readable_seconds(value) if key == "seconds" else readable(value)
    axes.annotate(text, (value, row), (0, up), textcoords="offset points", ha="center", color=colour, fontsize=7.5)


def _finding(title: str, costs: Sequence[PhaseCost]) -> str:
    first, second = costs
    where = ", ".join(sorted({device for cost in costs for device in cost.devices}))
    share = 100 * first.seconds / (first.seconds + second.seconds)
    return (
        f"One run of {title} takes {readable_seconds(first.seconds)} + {readable_seconds(second.seconds)} ({where}), "
        f"{rounded(share, 0)} % of it inpainting, {'which all folds share' if first.shared else 'anew in every fold'}"
    )
