"""Panel: that graphs of variants are cut from one over everybody, or each institution's own."""

from brainfed.reporting.panels.known import Known
from brainfed.reporting.panels.panel import Panel, Place

BOTH = frozenset({"global_cut", "local"})


def _content(known: Known) -> frozenset[str] | None:
    """The scopes, of an experiment that has both and of a cohort with their picture."""
    scopes = {variant.setting("graph.scope") for variant in known.outline.variants}
    return BOTH if scopes >= BOTH and "scopes" in known.cohort.figures else None


PANEL = Panel("scopes", Place.BEFORE_SCORES, _content, "panels/scopes.html.j2")
