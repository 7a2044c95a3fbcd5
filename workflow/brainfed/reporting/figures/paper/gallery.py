"""The figures of the paper, drawn from an experiment: one kind each."""

from collections.abc import Callable, Mapping
from typing import Any

from matplotlib.figure import Figure

from brainfed.reporting.figures.paper.ablation import ablation_figure
from brainfed.reporting.figures.paper.clients import clients_figure
from brainfed.reporting.figures.paper.cost import cost_figure
from brainfed.reporting.figures.paper.distribution import distribution_figure
from brainfed.reporting.figures.paper.dose import dose_figure
from brainfed.reporting.figures.paper.fidelity import fidelity_figure
from brainfed.reporting.figures.paper.readings import readings_figure
from brainfed.reporting.figures.paper.rounds import rounds_figure
from brainfed.reporting.figures.paper.surface import surface_figure
from brainfed.reporting.figures.paper.sweep import sweep_figure
from brainfed.reporting.figures.style import drawing, save_svg
from brainfed.reporting.outline import ExperimentOutline, read_experiment
from brainfed.reporting.scored import read_scored
from brainfed.runtime.errors import UserError

KINDS: Mapping[str, Callable[[ExperimentOutline], Figure]] = {
    "bars": lambda outline: ablation_figure(outline, read_scored(outline)),
    "line": lambda outline: sweep_figure(outline, read_scored(outline)),
    "surface": lambda outline: surface_figure(outline, read_scored(outline)),
    "rounds": rounds_figure,
    "distribution": distribution_figure,
    "clients": lambda outline: clients_figure(
        outline.members, {member.name: read_scored(member) for member in outline.members}
    ),
    "cost": cost_figure,
    "fidelity": fidelity_figure,
    "dose": lambda outline: dose_figure(
        outline.axes[0], outline.members, {member.cohort: read_scored(member) for member in outline.members}
    ),
    "readings": lambda outline: readings_figure(outline, read_scored(outline)),
}
"""Kind -> the function that draws it."""


def draw(kind: str, experiment: Mapping[str, Any], output: str) -> None:
    """Draw one figure of an experiment, or of a group of experiments, as SVG.

    Args:
        kind: one of `KINDS`.
        experiment: its outline as builtins (`outline.ExperimentOutline`); a group's has `members`.
        output: the SVG's path.

    Raises:
        UserError: there is no such kind of figure.
    """
    if kind not in KINDS:
        raise UserError(f"report: there is no figure of the kind {kind!r}; it must be one of {', '.join(KINDS)}.")
    with drawing():
        save_svg(KINDS[kind](read_experiment(experiment)), output)
