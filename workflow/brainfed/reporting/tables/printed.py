"""The paper's printed number for a variant, found by its resolved settings, not by its name."""

from typing import Any

from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.tables.paper_numbers import FEDNI_FIGURES, FEDNI_FULL, FEDNI_TABLE_V, PAPER_METRICS, PrintedRow
from brainfed.reporting.variants import ShownVariant
from brainfed.runtime.settings import flat_settings


def as_in_the_paper(outline: ExperimentOutline) -> bool:
    """Whether the evaluation is FedNI's: true diagnoses, all subjects in random institutions, folds, transductive."""
    split = outline.split
    drawn = split["validation"] == "folds" and split["institutions"] == "random"
    return drawn and not split.get("share") and outline.protocol == "transductive" and outline.labels != "permuted"


def changed_settings(variant: ShownVariant) -> dict[str, Any]:
    """Every resolved setting of a variant that is not as shipped -> its value; None for one that it lacks."""
    usual, own = variant.shipped, flat_settings(variant.settings, variant.stages)
    return {
        key: own.get(key)
        for key in usual.keys() | own.keys()
        if (key in own) != (key in usual) or own[key] != usual[key]
    }


def printed_value(variant: ShownVariant, cohort: str, metric: str) -> float | None:
    """The paper's accuracy or AUC of this variant; None without one.

    Args:
        variant: FedNI as shipped or with one part changed, or another method of Table V as shipped.
        cohort: `abide` or `adni`.
        metric: `accuracy` or `auc`.
    """
    if variant.method in FEDNI_TABLE_V[cohort] and not changed_settings(variant):
        return FEDNI_TABLE_V[cohort][variant.method][PAPER_METRICS.index(metric)][0]
    row = printed_row(variant)
    return row.value(cohort, metric) if row else None


def printed_row(variant: ShownVariant) -> PrintedRow | None:
    """The bar of this variant in FedNI's ablation, or of FedNI itself; None without one."""
    if variant.method != "fedni":
        return None
    changed = changed_settings(variant)
    rows = [FEDNI_FULL, *(row for rows in FEDNI_FIGURES.values() for row in rows)]
    return next((row for row in rows if dict(row.differs) == changed), None)
