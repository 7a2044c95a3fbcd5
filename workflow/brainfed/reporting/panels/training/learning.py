"""Panels: learning curves, and clusters of institutions over the rounds."""

from brainfed.reporting.panels.known import Known
from brainfed.reporting.panels.panel import Panel, Place
from brainfed.reporting.pictures import Picture


def _curves(known: Known) -> Picture | None:
    """The curves, where any variant trains in rounds or epochs."""
    trains = any(variant.epochs_a_round for variant in known.outline.variants)
    return known.pictures["learning"] if trains else None


def _clusters(known: Known) -> Picture | None:
    return known.pictures.get("clusters")


CURVES = Panel("learning", Place.LEARNING, _curves, "panels/figure.html.j2")
CLUSTERS = Panel("clusters", Place.LEARNING, _clusters, "panels/figure.html.j2")
