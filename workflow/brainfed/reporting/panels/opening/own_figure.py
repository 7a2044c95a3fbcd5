"""Panel: the figure of an experiment that repeats one of a paper."""

from brainfed.reporting.panels.known import Known
from brainfed.reporting.panels.panel import Panel, Place
from brainfed.reporting.pictures import Picture


def _content(known: Known) -> Picture | None:
    return known.picture


PANEL = Panel("own-figure", Place.OPENING, _content, "panels/own-figure.html.j2")
