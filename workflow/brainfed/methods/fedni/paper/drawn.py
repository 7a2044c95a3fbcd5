"""Figures of FedNI's paper that belong to it alone."""

from collections.abc import Mapping

from brainfed.methods.fedni.paper.figures.cost import cost_figure
from brainfed.methods.fedni.paper.figures.distribution import distribution_figure
from brainfed.methods.fedni.paper.figures.dose import dose_figure
from brainfed.methods.fedni.paper.figures.fidelity import fidelity_figure
from brainfed.methods.fedni.paper.figures.readings import readings_figure
from brainfed.methods.fedni.paper.figures.surface import surface_figure
from brainfed.reporting.figures.paper.gallery import Drawing
from brainfed.reporting.scored import read_scored

FIGURES: Mapping[str, Drawing] = {
    "surface": lambda outline: surface_figure(outline, read_scored(outline)),
    "distribution": distribution_figure,
    "cost": cost_figure,
    "fidelity": fidelity_figure,
    "dose": lambda outline: dose_figure(
        outline.axes[0], outline.members, {member.cohort: read_scored(member) for member in outline.members}
    ),
    "readings": lambda outline: readings_figure(outline, read_scored(outline)),
}
"""Kind -> what draws it."""
