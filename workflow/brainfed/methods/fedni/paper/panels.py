"""FedNI's panels: what its paper prints, and what generated nodes are and do."""

from dataclasses import dataclass

from brainfed.methods.fedni.paper.fidelity import FidelityRow, count_sentence, fidelity_rows, read_fidelity
from brainfed.methods.fedni.paper.generated_nodes import (
    GeneratedNodes,
    count_sentences,
    effect_sentences,
    read_generated,
)
from brainfed.methods.fedni.paper.readings import Readings, find_readings
from brainfed.methods.fedni.paper.table_v import PrintedCohort, beside_the_paper, conclusion, printed_cohort
from brainfed.methods.fedni.paper.why import why_sentences
from brainfed.reporting.panels.known import Known
from brainfed.reporting.panels.panel import Panel, Place


@dataclass(frozen=True)
class ShownReadings:
    """Distance of each reading to the paper, and the paper's cohort."""

    readings: Readings
    printed: PrintedCohort


@dataclass(frozen=True)
class Fidelity:
    """Generated against true neighbours.

    Attributes:
        rows: every measure beside its baselines.
        missing: number of missing neighbours, predicted and generated.
    """

    rows: list[FidelityRow]
    missing: list[str]


@dataclass(frozen=True)
class Generated:
    """What generated nodes do.

    Attributes:
        nodes: number of generated nodes and of their neighbours.
        effects: effect of these nodes on the scores.
    """

    nodes: list[GeneratedNodes]
    effects: list[str]


def _why(known: Known) -> list[str]:
    return why_sentences(known.cohort, known.outline, known.compared) if known.null is None else []


def _readings(known: Known) -> ShownReadings | None:
    found = find_readings(known.outline, known.scored) if known.outline.figure == "readings" else None
    return ShownReadings(found, printed_cohort(known)) if found else None


def _fidelity(known: Known) -> Fidelity | None:
    found = read_fidelity(known.outline.variants)
    return Fidelity(fidelity_rows(found), [count_sentence(one) for one in found]) if found else None


def _generated(known: Known) -> Generated | None:
    nodes = read_generated(known.outline.variants)
    if not nodes:
        return None
    effects = effect_sentences(known.compared) if known.null is None else []
    return Generated(nodes, [*count_sentences(nodes, known.outline.split), *effects])


def _noise(known: Known) -> bool:
    """Whether any variant trains a generator that may carry noise."""
    return any(variant.setting("inpainting.noise") is not None for variant in known.outline.variants)


PANELS = (
    Panel("paper-says", Place.OPENING, conclusion, "fedni/says.html.j2"),
    Panel("why", Place.BEFORE_SCORES, _why, "fedni/why.html.j2"),
    Panel("readings", Place.BEFORE_SCORES, _readings, "fedni/readings.html.j2"),
    Panel("fidelity", Place.BEFORE_SCORES, _fidelity, "fedni/fidelity.html.j2"),
    Panel("generated-nodes", Place.BEFORE_SCORES, _generated, "fedni/generated.html.j2"),
    Panel("beside-the-paper", Place.BESIDE_PAPER, beside_the_paper, "fedni/beside-the-paper.html.j2"),
    Panel("noise-of-generators", Place.PRIVACY, _noise, "fedni/noise.html.j2"),
)
