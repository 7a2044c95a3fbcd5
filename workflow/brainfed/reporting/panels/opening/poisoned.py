"""Panel: attacks on variants, and their defences."""

from brainfed.reporting.panels.known import Known
from brainfed.reporting.panels.panel import Panel, Place
from brainfed.reporting.text.poison_words import poison_sentences


def _content(known: Known) -> list[str]:
    return poison_sentences(known.outline.variants, known.institutions)


PANEL = Panel("poisoned", Place.OPENING, _content, "panels/poisoned.html.j2")
