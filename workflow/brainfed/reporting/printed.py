"""Which number printed in the paper stands beside a variant: found by what it changes, not by how it is called."""

from dataclasses import asdict
from typing import Any

from brainfed.graphs.settings import GraphSettings
from brainfed.inpainting.settings import FusingSettings, InpaintingSettings
from brainfed.reporting.paper_numbers import FEDNI_FIGURES, FEDNI_FULL, FEDNI_TABLE_V, PAPER_METRICS, PrintedRow
from brainfed.reporting.variants import ShownVariant

VARIED: dict[str, Any] = {
    f"{stage}.{name}": asdict(settings)[name]
    for stage, settings, names in (
        ("inpainting", InpaintingSettings(), ("masking", "discriminator", "federated", "alpha", "beta")),
        ("fusing", FusingSettings(), ("edges", "nodes")),
        ("graph", GraphSettings(), ("k", "self_weight", "shuffle", "scope", "embedding")),
    )
    for name in names
}
"""What FedNI's figures vary, and the value that FedNI itself has."""


def printed_value(variant: ShownVariant, cohort: str, metric: str) -> float | None:
    """The paper's accuracy or AUC of this variant; None where it printed none.

    Args:
        variant: FedNI as it is or with one part changed, or another method of Table V as it is.
        cohort: `abide` or `adni`.
        metric: `accuracy` or `auc`.
    """
    if variant.name == variant.method:
        printed = FEDNI_TABLE_V[cohort].get(variant.method)
        return printed[PAPER_METRICS.index(metric)][0] if printed else None
    row = printed_row(variant)
    return row.value(cohort, metric) if row else None


def printed_row(variant: ShownVariant) -> PrintedRow | None:
    """FedNI's ablation that this variant is, or FedNI itself; None where the paper has no such bar."""
    if variant.method != "fedni" or not all(variant.stages.get(stage) for stage in ("inpainting", "fusing", "graph")):
        return None
    if variant.settings.get("noise") == 0 or variant.settings.get("skip", "none") != "none":
        return None
    differs = {key: variant.setting(key) for key, usual in VARIED.items() if variant.setting(key) != usual}
    rows = [FEDNI_FULL, *(row for rows in FEDNI_FIGURES.values() for row in rows)]
    row = next((row for row in rows if dict(row.differs) == differs), None)
    return None if row is FEDNI_FULL and variant.unswept_title != variant.method_title else row
