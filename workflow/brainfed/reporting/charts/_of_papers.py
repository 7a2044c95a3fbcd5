"""Charts that repeat a figure of a paper: losses over the rounds, and the list of all kinds."""

from collections.abc import Callable, Mapping, Sequence

import altair as alt
import pandas as pd

from brainfed.reporting import ORDERED, ExperimentOutline, Interval, ShownVariant, read_scored, rounded
from brainfed.reporting.charts._lines import LEVELS, SOLID, DrawnLine, drawn_of, lines_panel, read_history, sure
from brainfed.reporting.charts._style import Chart, headed, note_chart, save_chart
from brainfed.reporting.charts._sweeps import Printed, ablation_chart, axis_title, clients_chart, sweep_chart
from brainfed.runtime import UserError

# Losses and accuracy after every round, one line for each number of local epochs (FedNI Fig. 9).

PANELS = (
    ("training_loss", "training loss (cross-entropy)"),
    ("test_loss", "test loss (cross-entropy)"),
    ("test_accuracy", "test accuracy"),
)


def rounds_chart(outline: ExperimentOutline) -> Chart:
    """Three panels; mean over institutions and runs."""
    axis = outline.axes[0]
    swept = [variant for variant in outline.variants if variant.setting(axis) is not None and variant.histories]
    swept = sorted(swept, key=lambda variant: float(variant.setting(axis)))
    curves = [(variant, curve) for variant in swept if len(curve := _curves(variant))]
    if not curves:
        return note_chart("no method of this experiment trains in rounds")
    shown = [variant for variant, _ in curves]
    ends = {variant.name: float(curve["test_accuracy"].iloc[-1]) for variant, curve in curves}
    panels = []
    for column, title in PANELS:
        lines = [
            DrawnLine(
                f"{_named(variant, axis, shown)} (ends at {rounded(ends[variant.name], 2)})",
                ordered_colour(number, len(shown)),
                _points(curve[column]),
                shape="circle" if len(curve) == 1 else "",
                dash=SOLID if not number else LEVELS[(number - 1) % len(LEVELS)],
            )
            for number, (variant, curve) in enumerate(curves)
        ]
        panels.append(lines_panel(lines, "communication rounds", title, width=250, height=240))
    finding = _finding_of_rounds(shown, axis, ends, int(curves[0][1].index[-1]))
    return headed(alt.hconcat(*panels, spacing=30), finding)


def ordered_colour(number: int, lines: int) -> str:
    """The colour of one of so many lines that are values of one setting, in ascending order."""
    return ORDERED[round(number * (len(ORDERED) - 1) / max(lines - 1, 1))]


def _points(curve: "pd.Series[float]") -> list[tuple[float, Interval]]:
    return [(float(curve.index[place]), sure(float(curve.iloc[place]))) for place in drawn_of(len(curve))]


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
    best, worst = (pick(shown, key=lambda variant: ends[variant.name]) for pick in (max, min))
    return (
        f"After {rounds} rounds the accuracy is highest with {_named(best, axis, shown)} "
        f"({rounded(ends[best.name], 2)}) and lowest with "
        f"{_named(worst, axis, shown)} ({rounded(ends[worst.name], 2)}; not tested)"
    )


# The figures that repeat one of a paper, drawn from an experiment: one kind each.
#
# Kinds that any method may have are here; a family brings kinds of its own (`papers._figures`).

Drawing = Callable[[ExperimentOutline], Chart]
Printing = Callable[[ExperimentOutline], Printed]

KINDS: Mapping[str, Callable[[ExperimentOutline, Printed], Chart]] = {
    "bars": lambda outline, printed: ablation_chart(outline, read_scored(outline), printed),
    "line": lambda outline, printed: sweep_chart(outline, read_scored(outline), printed),
    "rounds": lambda outline, _: rounds_chart(outline),
    "clients": lambda outline, _: clients_chart(
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
    """Write one figure of an experiment as SVG; the other arguments are those of `chart_of`."""
    save_chart(chart_of(kind, outline, figures, printings), output)


def chart_of(
    kind: str, outline: ExperimentOutline, figures: Mapping[str, Drawing], printings: Sequence[Printing] = ()
) -> Chart:
    """One figure of an experiment, or of a group of experiments.

    Args:
        kind: one of `KINDS` or of `figures`.
        outline: the experiment; a group's has `members`.
        figures: the kinds of the families.
        printings: what finds the accuracies that papers print for an experiment.

    Raises:
        UserError: there is no such kind of figure.
    """
    if kind in figures:
        return figures[kind](outline)
    if kind not in KINDS:
        known = ", ".join([*KINDS, *figures])
        raise UserError(f"report: there is no figure of the kind {kind!r}; it must be one of {known}.")
    printed = {name: accuracy for find in printings for name, accuracy in find(outline).items()}
    return KINDS[kind](outline, printed)
