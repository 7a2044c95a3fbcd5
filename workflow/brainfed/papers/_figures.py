"""What families bring to figures that repeat one of a paper: kinds of figures, and the accuracies that papers print."""

from collections.abc import Mapping

from brainfed.papers._fedni_figures_of_nodes import FIGURES as FEDNI
from brainfed.papers._fedni_numbers import printed_accuracies as printed_by_fedni
from brainfed.reporting.charts import Drawing, Printing

FIGURES: Mapping[str, Drawing] = {**FEDNI}
"""Kind of figure (`experiments.NAME.figure`) -> what draws it, beside the kinds of any method."""
PRINTINGS: tuple[Printing, ...] = (printed_by_fedni,)
"""What finds the printed accuracies of an experiment, for figures of any kind."""
