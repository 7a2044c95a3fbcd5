"""Panel: every federated method beside the same model alone and on pooled data."""

from dataclasses import dataclass

from brainfed.reporting.panels.known import Known
from brainfed.reporting.panels.panel import Panel, Place
from brainfed.reporting.tables.twins import TwinRow, missing_twins, twin_notes, twin_rows


@dataclass(frozen=True)
class Twins:
    """The twins of an experiment.

    Attributes:
        rows: two a federated method.
        missing: sentences on methods without a twin.
        notes: settings that changed nothing, and other differences between methods and twins.
        gain_note: what local training and a dot of the figure are; empty if nothing is to be said.
    """

    rows: list[TwinRow]
    missing: list[str]
    notes: list[str]
    gain_note: str


def _content(known: Known) -> Twins | None:
    variants = known.outline.variants
    rows = twin_rows(variants, known.scored, known.gain)
    notes = [*known.idle, *twin_notes(variants)]
    return Twins(rows, missing_twins(rows), notes, _gain_note(known)) if rows else None


def _gain_note(known: Known) -> str:
    if known.answer.unseen:
        site = known.words.site
        return f"A {site} tested unseen has no model of its own: alone is the mean of the other {site}s\u2019 models."
    if known.outline.draws_anew:
        group = "graphs" if known.words.target == "class" else "people"
        return f"Institutions are drawn anew in every repeat: a dot is a place in the draw, not a group of {group}."
    return ""


PANEL = Panel("twins", Place.SCORES, _content, "panels/twins.html.j2")
