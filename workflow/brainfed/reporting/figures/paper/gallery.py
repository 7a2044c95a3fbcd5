"""The figures that repeat one of a paper, drawn from an experiment: one kind each.

Kinds that any method may have are here; a family brings kinds of its own (`methods.papers.figures`).
"""

from collections.abc import Callable, Mapping, Sequence

from matplotlib.figure import Figure

from brainfed.reporting.figures.paper.ablation import ablation_figure
from brainfed.reporting.figures.paper.clients import clients_figure
from brainfed.reporting.figures.paper.printed import Printed
from brainfed.reporting.figures.paper.rounds import rounds_figure
from brainfed.reporting.figures.paper.sweep import sweep_figure
from brainfed.reporting.figures.style import drawing, save_svg
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.scored import read_scored
from brainfed.runtime.errors import UserError

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
