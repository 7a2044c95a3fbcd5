"""Panel: what drives the prediction of linear models."""

from dataclasses import dataclass

from brainfed.reporting.panels.known import Known
from brainfed.reporting.panels.panel import Panel, Place
from brainfed.reporting.tables.patterns import (
    ShownPattern,
    ViewRow,
    planted_sentences,
    read_strongest,
    shown_patterns,
    view_rows,
)


@dataclass(frozen=True)
class Patterns:
    """What changes with the score.

    Attributes:
        shown: strongest features of linear models; at least one model.
        planted: planted connections among them, in a simulated cohort.
        views: loss of AUC by permuted view; empty without several views.
    """

    shown: list[ShownPattern]
    planted: list[str]
    views: list[ViewRow]


def _content(known: Known) -> Patterns | None:
    tables, variants = known.outline.tables, known.outline.variants
    if "patterns" not in tables:
        return None
    shown = shown_patterns(read_strongest(tables["patterns"]), variants, known.words)
    if not shown:
        return None
    return Patterns(
        shown, planted_sentences(tables["planted"], variants, known.words), view_rows(tables["views"], variants)
    )


PANEL = Panel("patterns", Place.EXPLANATION, _content, "panels/patterns.html.j2")
