"""The paper's printed number for a variant, found by its resolved settings, not by its name."""

from brainfed.methods.fedni.paper.numbers import (
    FEDNI_FIGURES,
    FEDNI_FULL,
    FEDNI_TABLE_V,
    PAPER_METRICS,
    PrintedRow,
    paper_cohort,
)
from brainfed.reporting.figures.paper.printed import PrintedAccuracy
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.variants import ShownVariant, changed_settings

TABLE_V = "FedNI in the paper, Table V"


def as_in_the_paper(outline: ExperimentOutline) -> bool:
    """Whether the evaluation is FedNI's: true diagnoses, all subjects in random institutions, folds, transductive."""
    split = outline.split
    drawn = split["validation"] == "folds" and split["institutions"] == "random"
    return drawn and not split.get("share") and outline.protocol == "transductive" and outline.labels != "permuted"


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


def printed_accuracies(outline: ExperimentOutline) -> dict[str, PrintedAccuracy]:
    """Variant -> its printed accuracy, for an experiment that is evaluated as in the paper."""
    if not as_in_the_paper(outline):
        return {}
    cohort, _ = paper_cohort(outline.cohort)
    values = {variant.name: printed_value(variant, cohort, "accuracy") for variant in outline.variants}
    whole = {variant.name for variant in outline.variants if printed_row(variant) is FEDNI_FULL}
    return {
        name: PrintedAccuracy(value, TABLE_V if name in whole else "")
        for name, value in values.items()
        if value is not None
    }


def printed_row(variant: ShownVariant) -> PrintedRow | None:
    """The bar of this variant in FedNI's ablation, or of FedNI itself; None without one."""
    if variant.method != "fedni":
        return None
    changed = changed_settings(variant)
    rows = [FEDNI_FULL, *(row for rows in FEDNI_FIGURES.values() for row in rows)]
    return next((row for row in rows if dict(row.differs) == changed), None)
