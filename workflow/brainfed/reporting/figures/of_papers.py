"""Figures that repeat one of a paper: clients, rounds, and the list of all kinds."""

from collections.abc import Callable, Mapping, Sequence

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from brainfed.reporting.figures.style import SERIES, WIDE, drawing, headed, key_below, new_figure, note_figure, save_svg
from brainfed.reporting.figures.sweeps import METRICS, Printed, ablation_figure, axis_title, sweep_figure
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.rounding import rounded
from brainfed.reporting.scored import Scored, read_scored
from brainfed.reporting.variants import ShownVariant
from brainfed.runtime.artefacts import read_table
from brainfed.runtime.errors import UserError

# Learning curves of all runs, as figures and charts read them.

CURVES = ("training_loss", "test_loss", "test_accuracy")


def read_history(files: Sequence[tuple[str, int, str]]) -> pd.DataFrame:
    """Curves of all runs, averaged over institutions.

    Args:
        files: (variant, repeat, path of its history).

    Returns:
        variant, repeat, fold, round, training_loss, test_loss, test_accuracy; methods without rounds have no row.
    """
    parts = []
    for variant, repeat, path in files:
        history = read_table(path, ["fold", "institution", "round", *CURVES])
        means = history.groupby(["fold", "round"])[list(CURVES)].mean().reset_index()
        parts.append(means.assign(variant=variant, repeat=repeat))
    return pd.concat(parts, ignore_index=True)


# Scores against the number of institutions (FedNI Fig. 7).


def clients_figure(members: Sequence[ExperimentOutline], scored: Mapping[str, Scored]) -> Figure:
    """A line a variant over the members' numbers of institutions.

    Args:
        members: experiments that differ in their number of institutions.
        scored: experiment -> its scores.
    """
    ordered = sorted(members, key=lambda member: int(member.split["count"]))
    counts = [int(member.split["count"]) for member in ordered]
    variants = list({variant.name: variant for member in ordered for variant in member.variants}.values())
    if not variants:
        return note_figure("no experiment belongs to this group")
    figure = new_figure(WIDE, 3.35 + 0.16 * (-(-len(variants) // 4)))
    for axes, (metric, title) in zip(figure.subplots(1, 2), METRICS, strict=True):
        for number, variant in enumerate(variants):
            colour, marker = SERIES[number % len(SERIES)]
            found = [
                (count, scored[member.name].interval(variant.name, metric))
                for count, member in zip(counts, ordered, strict=True)
                if any(other.name == variant.name for other in member.variants)
            ]
            x = np.array([count for count, _ in found]) + 0.09 * (number - (len(variants) - 1) / 2)
            reach = np.array([[score.mean - score.low, score.high - score.mean] for _, score in found]).T
            axes.errorbar(
                x, [score.mean for _, score in found], yerr=np.nan_to_num(reach), color=colour, marker=marker,
                markersize=5, elinewidth=1.1,
            )  # fmt: skip
        axes.set_xticks(counts)
        axes.set_xlabel("institutions that take part")
        axes.set_ylabel(f"{title} (mean over runs)")
        axes.grid(axis="y")
    headed(figure, _finding_of_clients(ordered, counts, scored))
    key = [
        Line2D([], [], color=colour, marker=marker, markersize=5, label=variant.title)
        for variant, (colour, marker) in zip(variants, SERIES * len(variants), strict=False)
    ]
    key_below(figure, key, columns=4)
    return figure


def _finding_of_clients(
    ordered: Sequence[ExperimentOutline], counts: Sequence[int], scored: Mapping[str, Scored]
) -> str:
    """The first and the last point of a variant: one that stands beside others on the page, or the first."""
    first, last = ordered[0], ordered[-1]
    both = [variant for variant in first.variants if any(other.name == variant.name for other in last.variants)]
    shown = next((variant for variant in both if variant.beside), both[0] if both else None)
    if shown is None:
        return "Scores against the number of institutions that take part"
    ends = [scored[member.name].interval(shown.name, "accuracy") for member in (first, last)]
    return f"{shown.title}: accuracy {ends[0]} with {counts[0]} institutions, {ends[1]} with {counts[-1]} (not tested)"


# Losses and accuracy after every round, one line for each number of local epochs (FedNI Fig. 9).

PANELS = (
    ("training_loss", "training loss (cross-entropy)"),
    ("test_loss", "test loss (cross-entropy)"),
    ("test_accuracy", "test accuracy"),
)
DASHES: tuple[tuple[float, tuple[float, ...]] | None, ...] = (
    None,
    (0, (5, 1.5)),
    (0, (2.5, 1.5)),
    (0, (1, 1.2)),
    (0, (6, 1.5, 1, 1.5)),
)


def rounds_figure(outline: ExperimentOutline) -> Figure:
    """Three panels; mean over institutions and runs."""
    axis = outline.axes[0]
    shown = [variant for variant in outline.variants if variant.setting(axis) is not None and variant.histories]
    shown = sorted(shown, key=lambda variant: float(variant.setting(axis)))
    curves = {variant.name: _curves(variant) for variant in shown}
    shown = [variant for variant in shown if len(curves[variant.name])]
    if not shown:
        return note_figure("no method of this experiment trains in rounds")
    figure = new_figure(WIDE, 3.2)
    colours = matplotlib.colormaps["viridis"](np.linspace(0.88, 0.0, len(shown)))
    for axes, (column, title) in zip(figure.subplots(1, 3), PANELS, strict=True):
        for number, variant in enumerate(shown):
            mean = curves[variant.name][column]
            axes.plot(
                mean.index, mean, color=colours[number], linestyle=DASHES[number % len(DASHES)],
                marker="o" if len(mean) == 1 else None,
            )  # fmt: skip
        axes.set_title(title, fontweight="normal", fontsize=8.5)
        axes.set_xlabel("communication rounds")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.set_xlim(0, None)
        axes.grid(axis="y")
    ends = {variant.name: float(curves[variant.name]["test_accuracy"].iloc[-1]) for variant in shown}
    headed(figure, _finding_of_rounds(shown, axis, ends, int(curves[shown[0].name].index[-1])))
    key = [
        Line2D(
            [], [], color=colours[number], linestyle=DASHES[number % len(DASHES)],
            label=f"{_named(variant, axis, shown)} (ends at {rounded(ends[variant.name], 2)})",
        )
        for number, variant in enumerate(shown)
    ]  # fmt: skip
    key_below(figure, key, columns=min(len(key), 5))
    return figure


def _curves(variant: ShownVariant) -> pd.DataFrame:
    """Mean over runs, indexed by round."""
    history = read_history([(variant.name, repeat, path) for repeat, path in enumerate(variant.histories)])
    return history.groupby("round")[[column for column, _ in PANELS]].mean()


def _named(variant: ShownVariant, axis: str, shown: Sequence[ShownVariant]) -> str:
    """`E = 5`; with its method if there are several."""
    name = "E" if axis.endswith("local_epochs") else axis_title(axis)
    value = f"{name} = {variant.setting(axis)}"
    several = len({other.method for other in shown}) > 1
    return f"{variant.method_title}, {value}" if several else value


def _finding_of_rounds(shown: Sequence[ShownVariant], axis: str, ends: dict[str, float], rounds: int) -> str:
    if len(shown) == 1:
        return f"After {rounds} rounds the accuracy is {rounded(ends[shown[0].name], 3)}"
    best = max(shown, key=lambda variant: ends[variant.name])
    worst = min(shown, key=lambda variant: ends[variant.name])
    return (
        f"After {rounds} rounds the accuracy is highest with {_named(best, axis, shown)} "
        f"({rounded(ends[best.name], 2)}) and lowest with "
        f"{_named(worst, axis, shown)} ({rounded(ends[worst.name], 2)}; not tested)"
    )


# The figures that repeat one of a paper, drawn from an experiment: one kind each.
#
# Kinds that any method may have are here; a family brings kinds of its own (`papers.figures`).

Drawing = Callable[[ExperimentOutline], Figure]
Printing = Callable[[ExperimentOutline], Printed]

KINDS: Mapping[str, Callable[[ExperimentOutline, Printed], Figure]] = {
    "bars": lambda outline, printed: ablation_figure(outline, read_scored(outline), printed),
    "line": lambda outline, printed: sweep_figure(outline, read_scored(outline), printed),
    "rounds": lambda outline, _: rounds_figure(outline),
    "clients": lambda outline, _: clients_figure(
        outline.members, {member.name: read_scored(member) for member in outline.members}
    ),
}
"""Kind -> the function that draws it."""


def draw(
    kind: str,
    outline: ExperimentOutline,
    output: str,
    figures: Mapping[str, Drawing],
    printings: Sequence[Printing] = (),
) -> None:
    """Draw one figure of an experiment, or of a group of experiments, as SVG.

    Args:
        kind: one of `KINDS` or of `figures`.
        outline: the experiment; a group's has `members`.
        output: the SVG's path.
        figures: the kinds of the families.
        printings: what finds the accuracies that papers print for an experiment.

    Raises:
        UserError: there is no such kind of figure.
    """
    if kind not in {*KINDS, *figures}:
        known = ", ".join([*KINDS, *figures])
        raise UserError(f"report: there is no figure of the kind {kind!r}; it must be one of {known}.")
    with drawing():
        save_svg(figure_of(kind, outline, figures, printings), output)


def figure_of(
    kind: str, outline: ExperimentOutline, figures: Mapping[str, Drawing], printings: Sequence[Printing] = ()
) -> Figure:
    """The figure itself; arguments as of `draw`."""
    if kind in figures:
        return figures[kind](outline)
    printed = {name: accuracy for find in printings for name, accuracy in find(outline).items()}
    return KINDS[kind](outline, printed)
