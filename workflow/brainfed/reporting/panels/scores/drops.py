"""Panel: what attacks take away from the scores."""

from brainfed.reporting.panels.known import Known
from brainfed.reporting.panels.panel import Panel, Place
from brainfed.reporting.tables.drops import DropTable, drop_table


def _content(known: Known) -> DropTable | None:
    return drop_table(known.outline.variants, known.scored, known.institutions)


PANEL = Panel("drops", Place.AFTER_SCORES, _content, "panels/drops.html.j2")
