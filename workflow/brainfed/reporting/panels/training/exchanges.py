"""Panel: what crosses between institutions."""

from brainfed.reporting.panels.known import Known
from brainfed.reporting.panels.panel import Panel, Place
from brainfed.reporting.tables.exchanges import Exchange, read_exchanges, with_totals


def _content(known: Known) -> list[Exchange]:
    return with_totals(read_exchanges(known.outline.variants))


PANEL = Panel("exchanges", Place.TRAFFIC, _content, "panels/exchanges.html.j2")
