"""Our scores beside FedNI's Table V, what its paper concludes, and why a graph network is weak."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from jinja2 import PackageLoader

from brainfed.cohort import DIAGNOSIS_WORDS, ClassWords
from brainfed.evaluation import INSTITUTION
from brainfed.papers._fedni_nodes import (
    FidelityRow,
    GeneratedNodes,
    count_sentence,
    count_sentences,
    effect_sentences,
    fidelity_rows,
    read_fidelity,
    read_generated,
)
from brainfed.papers._fedni_numbers import (
    FEDNI_SAYS,
    FEDNI_SOURCE,
    FEDNI_TABLE_V,
    PAPER_COLUMNS,
    PAPER_METRICS,
    PaperColumn,
    PrintedCohort,
    as_in_the_paper,
    hard_labels,
    paper_cohort,
)
from brainfed.papers._fedni_readings import Readings, find_readings
from brainfed.reporting import (
    Citation,
    Cited,
    CohortOutline,
    ExperimentOutline,
    PageTests,
    Paper,
    Scored,
    ShownVariant,
    by_family,
    changed_settings,
    rounded,
    short,
    signed,
    significant,
)
from brainfed.reporting.panels import Known, Panel, Place
from brainfed.reporting.tables import Cell, Row
from brainfed.reporting.text import listed

# Our scores beside those of FedNI's Table V, and what the paper concludes from its figures.


@dataclass(frozen=True)
class Conclusion:
    """What the paper concludes from the figure or table that an experiment repeats.

    Attributes:
        says: `Fig. 8: accuracy rises ...`.
        printed: the paper's cohort.
    """

    says: str
    printed: PrintedCohort


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


def conclusion(known: Known) -> Conclusion | None:
    """The paper's conclusion from the figure that an experiment repeats; None without one."""
    name = known.outline.paper
    if known.picture is None or name not in FEDNI_SAYS:
        return None
    shown = name.replace("fig", "Fig. ").replace("table", "Table ").replace("Table 6", "Table VI")
    return Conclusion(f"{shown}: {FEDNI_SAYS[name]}", paper_cohort(known.cohort.name))


def beside_the_paper(known: Known) -> BesideThePaper | None:
    """The table of an experiment that is evaluated as in the paper; None without a method of Table V."""
    if not as_in_the_paper(known.outline):
        return None
    rows = paper_rows(known.summary, known.outline.variants, known.cohort.name, known.scored)
    if not rows:
        return None
    printed = paper_cohort(known.cohort.name)
    return BesideThePaper(rows, PAPER_COLUMNS, printed, hard_labels(printed.column), FEDNI_SOURCE)


def paper_rows(summary: pd.DataFrame, variants: Sequence[ShownVariant], cohort: str, scored: Scored) -> list[Row]:
    """The cells of `PAPER_COLUMNS` for every variant that is a method of Table V in all its settings."""
    printed = FEDNI_TABLE_V[paper_cohort(cohort).column]
    ours = summary[summary["scope"] == INSTITUTION].set_index(["variant", "metric"]).to_dict("index")
    shipped = [variant for variant in variants if variant.method in printed and not changed_settings(variant)]
    rows = []
    for variant in by_family(shipped):
        cells: list[Cell] = []
        for column in PAPER_COLUMNS:
            row = ours[variant.name, column.ours]
            digits = scored.interval(variant.name, column.ours).digits
            spread = float(row["sd_of_repeats"])
            note = f"({short(spread, digits)})" if np.isfinite(spread) else ""
            cells.append(Cell(rounded(float(row["mean"]), digits), float(row["mean"]), note))
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
    by_name = {variant.name: variant for variant in outline.variants}
    said: list[str] = []
    if "homophily" in cohort.figures:
        table = pd.read_csv(Path(cohort.figures["homophily"]).with_suffix(".tsv"), sep="\t")
        said += homophily_sentences(table, cohort.words)
    return said + [_repairs(by_name[name], compared) for name in PLAIN if name in by_name]


def homophily_sentences(table: pd.DataFrame, words: ClassWords = DIAGNOSIS_WORDS) -> list[str]:
    """Share of neighbours with the same diagnosis, and the share by chance, from a `homophily_table`."""
    means = table[table["label"] == words.target].groupby("title", sort=False)[["found", "chance"]].mean()
    parts = [
        f"{rounded(100 * share, 0)} % ({title}; by chance {rounded(100 * chance, 0)} %)"
        for title, share, chance in zip(means.index, means["found"].tolist(), means["chance"].tolist(), strict=True)
        if np.isfinite(share)
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


# FedNI's panels: what its paper prints, and what generated nodes are and do.


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


def _readings(known: Known) -> Readings | None:
    return find_readings(known.outline, known.scored) if known.outline.figure == "readings" else None


def _fidelity(known: Known) -> Fidelity | None:
    shown = read_fidelity(known.outline.variants)
    return Fidelity(fidelity_rows(shown), [count_sentence(fidelity) for fidelity in shown]) if shown else None


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
