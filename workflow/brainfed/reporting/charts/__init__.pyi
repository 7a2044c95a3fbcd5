from ._style import (
    Panel, Chart, VERSION, SOURCE, config, tooltip, save_chart, headed, titled, apart, note_chart, IntervalRow, Line,
    dot_rows,
)
from ._distributions import steps
from ._cohort import draw_cohort
from ._scores import SHAPES, by_site_chart
from ._effects import effects_chart, draw_measures
from ._gallery import draw_leakage, draw_experiment
from ._graphs import homophily_chart, degrees_chart, draw_sizes, draw_clusters
from ._lines import SOLID, DASHED, DrawnLine, sure, over_people, numbered, level, lines_panel
from ._sweeps import PrintedAccuracy, axis_title
from ._of_papers import ordered_colour, Drawing, Printing, draw

__all__ = [
    "Panel", "Chart", "VERSION", "SOURCE", "config", "tooltip", "save_chart", "headed", "titled", "apart", "note_chart",
    "IntervalRow", "Line", "dot_rows",
    "steps",
    "draw_cohort",
    "SHAPES", "by_site_chart",
    "effects_chart", "draw_measures",
    "draw_leakage", "draw_experiment",
    "homophily_chart", "degrees_chart", "draw_sizes", "draw_clusters",
    "SOLID", "DASHED", "DrawnLine", "sure", "over_people", "numbered", "level", "lines_panel",
    "PrintedAccuracy", "axis_title",
    "ordered_colour", "Drawing", "Printing", "draw",
]
