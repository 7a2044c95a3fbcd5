"""Our scores beside FedNI's Table V, what its paper concludes, and why a graph network is weak."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from brainfed.cohort.classes import DIAGNOSIS_WORDS, ClassWords
from brainfed.evaluation.scores import INSTITUTION
from brainfed.papers.fedni_numbers import (
    FEDNI_COHORTS,
    FEDNI_SAYS,
    FEDNI_SOURCE,
    FEDNI_TABLE_V,
    PAPER_COLUMNS,
    PAPER_METRICS,
    PaperColumn,
    as_in_the_paper,
    hard_labels,
    paper_cohort,
)
from brainfed.reporting.outline import CohortOutline, ExperimentOutline
from brainfed.reporting.panels.known import Known
from brainfed.reporting.rounding import rounded, short, signed
from brainfed.reporting.scored import PageTests, Scored, significant
from brainfed.reporting.tables.scores import Cell, Row
from brainfed.reporting.text.answer import listed
from brainfed.reporting.variants import ShownVariant, by_family, changed_settings

# Our scores beside those of FedNI's Table V, and what the paper concludes from its figures.


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


# Sentences on the weakness of the plain graph network and on the variants that improve it.

EXPERIMENT = "why"
PLAIN = ("fedgcn", "fedni")
METRIC = "auc"


def why_sentences(cohort: CohortOutline, outline: ExperimentOutline, compared: PageTests) -> list[str]:
    """Homophily against chance, then every plain graph method against its variants and the network without a graph."""
    if outline.name.removesuffix("-quick") != EXPERIMENT:
        return []
    held = {variant.name: variant for variant in outline.variants}
    said: list[str] = []
    if "homophily" in cohort.figures:
        table = pd.read_csv(Path(cohort.figures["homophily"]).with_suffix(".tsv"), sep="\t")
        said += homophily_sentences(table, cohort.words)
    return said + [_repairs(held[name], compared) for name in PLAIN if name in held]


def homophily_sentences(table: pd.DataFrame, words: ClassWords = DIAGNOSIS_WORDS) -> list[str]:
    """Share of neighbours with the same diagnosis, and the share by chance.

    Args:
        table: title, label, found, chance, a row a graph and label (`homophily_table`).
        words: names of the classes.
    """
    means = table[table["label"] == words.target].groupby("title", sort=False)[["found", "chance"]].mean()
    parts = [
        f"{rounded(100 * found, 0)} % ({title}; by chance {rounded(100 * chance, 0)} %)"
        for title, found, chance in zip(means.index, means["found"].tolist(), means["chance"].tolist(), strict=True)
        if np.isfinite(found)
    ]
    if not parts:
        return []
    return [
        f"Edges that join equal {words.targets}, in the graphs shown under Graphs (those of the first experiment of a "
        f"plain run that has any, not of every variant here): {', '.join(parts)}. A graph network averages a subject "
        "with its neighbours: where they are hardly more alike than chance, that may dilute the signal."
    ]


def _repairs(plain: ShownVariant, compared: PageTests) -> str:
    """The variants of a method that are significantly better, or worse, than the method of the paper."""
    variants = compared.variants
    own = [variant for variant in variants if variant.method == plain.method and variant.name != plain.name]
    others = [*own, *(variant for variant in variants if variant.name == "fedmlp")]
    if not others:
        return f"{plain.title} has no variant here."
    names = [variant.name for variant in others]
    tests = compared.differences(plain.name, names, METRIC)
    if not any(np.isfinite(p) for _, p in tests.values()):
        return f"Too few runs to say what changes {plain.title}."

    def titles(sign: int) -> list[str]:
        return [
            f"{variant.title} ({signed(tests[variant.name][0].mean, tests[variant.name][0].digits)})"
            for variant in others
            if significant(tests[variant.name][1]) and sign * tests[variant.name][0].mean > 0
        ]

    better, worse = (listed(titles(sign), "and") or "none" for sign in (1, -1))
    counted = compared.counted(plain.name, names, METRIC)
    counted = f", Holm-corrected {counted}" if counted else ""
    mean = compared.scored.interval(plain.name, METRIC).text
    return (
        f"Beside {plain.title} as it is (AUC {mean}), significantly better: {better}; significantly worse: {worse} "
        f"({len(others)} compared{counted})."
    )
