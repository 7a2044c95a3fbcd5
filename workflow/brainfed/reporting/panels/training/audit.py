"""Panel: what models reveal of their training subjects."""

from brainfed.reporting.panels.known import Known
from brainfed.reporting.panels.panel import Panel, Place
from brainfed.reporting.tables.audit import AuditTable, read_audit


def _content(known: Known) -> AuditTable | None:
    return read_audit(known.outline, known.scored)


PANEL = Panel("audit", Place.LEAKAGE, _content, "panels/audit.html.j2")
