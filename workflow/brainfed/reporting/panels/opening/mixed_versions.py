"""Panel: results that several versions of a library computed."""

from brainfed.reporting.panels.known import Known
from brainfed.reporting.panels.panel import Panel, Place
from brainfed.reporting.software import mixed_versions


def _content(known: Known) -> list[str]:
    return mixed_versions(known.outline)


PANEL = Panel("mixed-versions", Place.OPENING, _content, "panels/mixed-versions.html.j2")
