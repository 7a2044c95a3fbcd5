"""Panel: right and wrong predictions of all test subjects together."""

from collections.abc import Mapping

from brainfed.reporting.panels.known import Known
from brainfed.reporting.panels.panel import Panel, Place
from brainfed.reporting.pictures import Picture


def _content(known: Known) -> Mapping[str, Picture] | None:
    """The pictures, where test subjects may be pooled."""
    return known.pictures if known.outline.pooled else None


PANEL = Panel("predictions", Place.SCORES, _content, "panels/predictions.html.j2")
