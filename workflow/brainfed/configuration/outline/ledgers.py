"""What figures of scores against traffic read: the variants of an experiment with the ledgers of their first repeat."""

from typing import Any

from brainfed.configuration.layout.layout import Layout
from brainfed.configuration.outline.variant import shown_variant, variant_outline
from brainfed.configuration.planning.experiments import Experiment


def ledger_variants(layout: Layout, cohort: str, experiment: Experiment) -> list[dict[str, Any]]:
    """Fields of the variants; `costs` and `inpainting` name the first repeat's ledgers alone."""
    found = []
    for variant in experiment.variants:
        whole = variant_outline(layout, cohort, experiment, variant)
        generators = whole["inpainting"]["costs"][:1]
        own = {"costs": whole["costs"][:1], "inpainting": {"costs": generators} if generators else {}}
        found.append({**shown_variant(variant, experiment), **own})
    return found
