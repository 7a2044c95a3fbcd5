"""What FedNI adds to the report: its panels, its works to cite."""

from dataclasses import dataclass

from jinja2 import PackageLoader

from brainfed.papers.fedni_nodes import (
    FidelityRow,
    GeneratedNodes,
    count_sentence,
    count_sentences,
    effect_sentences,
    fidelity_rows,
    read_fidelity,
    read_generated,
)
from brainfed.papers.fedni_readings import Readings, find_readings
from brainfed.papers.fedni_tables import PrintedCohort, beside_the_paper, conclusion, printed_cohort, why_sentences
from brainfed.reporting.citations import Citation
from brainfed.reporting.panels.known import Known, Panel, Place
from brainfed.reporting.papers import Cited, Paper

# FedNI's panels: what its paper prints, and what generated nodes are and do.


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
    Panel("fidelity", Place.AFTER_SCORES, _fidelity, "fedni/fidelity.html.j2"),
    Panel("generated-nodes", Place.AFTER_SCORES, _generated, "fedni/generated.html.j2"),
    Panel("beside-the-paper", Place.BESIDE_PAPER, beside_the_paper, "fedni/beside-the-paper.html.j2"),
    Panel("noise-of-generators", Place.PRIVACY, _noise, "fedni/noise.html.j2"),
)


# What FedNI brings to the page: generated nodes, readings of the paper, and the numbers of its tables beside ours.

FEDNI = Citation(
    "Peng L, Wang N, Dvornek N, Zhu X, Li X (2023). FedNI: federated graph learning with network inpainting for "
    "population-based disease prediction. IEEE Transactions on Medical Imaging 42, 2032\u20132043.",
    "10.1109/TMI.2022.3188728",
)
MICROAGGREGATION = Citation(
    "Domingo-Ferrer J, Torra V (2005). Ordinal, continuous and heterogeneous k-anonymity through microaggregation. "
    "Data Mining and Knowledge Discovery 11, 195\u2013212.",
    "10.1007/s10618-005-0007-5",
)

PAPER = Paper(
    name="fedni",
    templates=PackageLoader("brainfed.papers", "templates/fedni"),
    panels=PANELS,
    # The workflow grew from this paper: every report cites it.
    cites=(Cited((FEDNI,)), Cited((MICROAGGREGATION,), frozenset({"fedni-centroids"}))),
)
