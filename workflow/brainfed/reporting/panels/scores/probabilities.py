"""Panels: calibration of probabilities, and AUC in groups of subjects."""

from brainfed.reporting.panels.known import Known
from brainfed.reporting.panels.panel import Panel, Place
from brainfed.reporting.pictures import Picture


def _calibration(known: Known) -> Picture | None:
    return known.pictures["calibration"] if known.outline.pooled else None


def _subgroups(known: Known) -> Picture | None:
    """The picture of a cohort of people with two classes."""
    applies = known.outline.pooled and known.words.count == 2 and known.cohort.kind != "graphs"
    return known.pictures["subgroups"] if applies else None


CALIBRATION = Panel("calibration", Place.EXPLANATION, _calibration, "panels/calibration.html.j2")
SUBGROUPS = Panel("subgroups", Place.EXPLANATION, _subgroups, "panels/subgroups.html.j2")
