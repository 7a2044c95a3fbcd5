"""Our scores beside those of FedNI's Table V, and what the paper concludes from its figures."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from brainfed.evaluation.scores import INSTITUTION
from brainfed.methods.fedni.paper.numbers import (
    FEDNI_COHORTS,
    FEDNI_SAYS,
    FEDNI_SOURCE,
    FEDNI_TABLE_V,
    PAPER_COLUMNS,
    PAPER_METRICS,
    PaperColumn,
    hard_labels,
    paper_cohort,
)
from brainfed.methods.fedni.paper.printed import as_in_the_paper
from brainfed.reporting.panels.known import Known
from brainfed.reporting.rounding import rounded, short
from brainfed.reporting.scored import Scored
from brainfed.reporting.tables.scores import Cell, Row
from brainfed.reporting.variants import ShownVariant, by_family, changed_settings


@dataclass(frozen=True)
class PrintedCohort:
    """The paper's cohort whose numbers stand beside ours.

    Attributes:
        cohort: in words.
        comparable: whether ours is of the same collection.
    """

    cohort: str
    comparable: bool


@dataclass(frozen=True)
class Conclusion:
    """What the paper concludes from the figure or table that an experiment repeats.

    Attributes:
        says: `Fig. 8: accuracy rises ...`.
        cohort: the paper's cohort.
        comparable: whether ours is of the same collection.
    """

    says: str
    cohort: str
    comparable: bool


@dataclass(frozen=True)
class BesideThePaper:
    """Our scores and the paper's.

    Attributes:
        rows: the cells of `columns` for every method of Table V.
        columns: our metrics, and the printed one of each.
        printed: the paper's cohort.
        auc: reason to compare the paper's AUC with our balanced accuracy.
        source: where the numbers are printed.
    """

    rows: list[Row]
    columns: tuple[PaperColumn, ...]
    printed: PrintedCohort
    auc: str
    source: str


def printed_cohort(known: Known) -> PrintedCohort:
    """The paper's cohort for an experiment's."""
    column, comparable = paper_cohort(known.cohort.name)
    return PrintedCohort(FEDNI_COHORTS[column], comparable)


def conclusion(known: Known) -> Conclusion | None:
    """The paper's conclusion from the figure that an experiment repeats; None without one."""
    name = known.outline.paper
    if known.picture is None or name not in FEDNI_SAYS:
        return None
    shown = name.replace("fig", "Fig. ").replace("table", "Table ").replace("Table 6", "Table VI")
    printed = printed_cohort(known)
    return Conclusion(f"{shown}: {FEDNI_SAYS[name]}", printed.cohort, printed.comparable)


def beside_the_paper(known: Known) -> BesideThePaper | None:
    """The table of an experiment that is evaluated as in the paper; None without a method of Table V."""
    if not as_in_the_paper(known.outline):
        return None
    rows = paper_rows(known.summary, known.outline.variants, known.cohort.name, known.scored)
    if not rows:
        return None
    column, _ = paper_cohort(known.cohort.name)
    return BesideThePaper(rows, PAPER_COLUMNS, printed_cohort(known), hard_labels(column), FEDNI_SOURCE)


def paper_rows(summary: pd.DataFrame, variants: Sequence[ShownVariant], cohort: str, scored: Scored) -> list[Row]:
    """The cells of `PAPER_COLUMNS` for every variant that is a method of Table V in all its settings."""
    printed = FEDNI_TABLE_V[paper_cohort(cohort)[0]]
    ours = summary[summary["scope"] == INSTITUTION].set_index(["variant", "metric"]).to_dict("index")
    shipped = [variant for variant in variants if variant.method in printed and not changed_settings(variant)]
    rows = []
    for variant in by_family(shipped):
        cells: list[Cell] = []
        for column in PAPER_COLUMNS:
            found = ours[variant.name, column.ours]
            digits = scored.interval(variant.name, column.ours).digits
            spread = float(found["sd_of_repeats"])
            note = f"({short(spread, digits)})" if np.isfinite(spread) else ""
            cells.append(Cell(rounded(float(found["mean"]), digits), float(found["mean"]), note))
            if column.paper:
                mean, sd = printed[variant.method][PAPER_METRICS.index(column.paper)]
                cells.append(Cell(rounded(mean), mean, f"({short(sd)})", printed=True))
        rows.append(Row(variant, tuple(cells)))
    return rows
