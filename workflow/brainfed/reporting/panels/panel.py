"""A part of the page that applies to some experiments: it finds its own content, and has a template that prints it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from brainfed.reporting.panels.known import Known


class Place(StrEnum):
    """Where a panel stands on the page, in the order of the page."""

    LEARNING = "learning"
    OPENING = "opening"
    BEFORE_SCORES = "before scores"
    SCORES = "scores"
    AFTER_SCORES = "after scores"
    EXPLANATION = "explanation"
    BESIDE_PAPER = "beside the paper"
    TRAFFIC = "traffic"
    PRIVACY = "privacy"
    LEAKAGE = "leakage"
    COST = "cost"
    PROVENANCE = "provenance"


RESULTS = (
    Place.OPENING,
    Place.BEFORE_SCORES,
    Place.SCORES,
    Place.AFTER_SCORES,
    Place.EXPLANATION,
    Place.BESIDE_PAPER,
)
"""Places of the section Results."""


@dataclass(frozen=True)
class Panel:
    """One kind of part.

    Attributes:
        name: unique among all panels.
        place: on the page. `PRIVACY` is printed once a page, by the first experiment to which the panel applies;
            everything else is of one experiment.
        content: what the template prints of an experiment, or None where the panel does not apply.
        template: name of the template, which reads `content`, `experiment` (the section), `chapter` and `parts`.
    """

    name: str
    place: Place
    content: Callable[[Known], object | None]
    template: str


@dataclass(frozen=True)
class ShownPanel:
    """A panel that applies to an experiment, with its content."""

    panel: Panel
    content: object


def applicable(panels: Sequence[Panel], known: Known) -> list[ShownPanel]:
    """The panels that apply to an experiment, in the order given; an empty list or text as content is none."""
    found = ((panel, panel.content(known)) for panel in panels)
    return [ShownPanel(panel, content) for panel, content in found if content]
