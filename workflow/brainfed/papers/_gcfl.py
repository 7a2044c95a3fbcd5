"""What GCFL adds to the report: printed scores, gains of institutions by two scorings."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import PackageLoader

from brainfed.evaluation import EXACT, LAST, PAPER_SCORING
from brainfed.reporting import (
    NONE,
    Citation,
    Cited,
    ExperimentOutline,
    Paper,
    ShownVariant,
    by_family,
    changed_settings,
    rounded,
    short,
    signed,
)
from brainfed.reporting.panels import Known, Panel, Place
from brainfed.reporting.tables import Cell, Row
from brainfed.reporting.text import listed

# Numbers printed in the paper of GCFL, found by a cohort's name and a variant's settings (Xie et al. 2021).

GCFL_PAPER = "gcfl"
"""An experiment's `paper` that has these numbers beside it."""
GCFL_SOURCE = "Xie et al., Federated graph classification over non-IID graphs, NeurIPS 2021"
TABLES = {3: ("nci1", "proteins", "imdb-binary"), 4: ("molecules", "biochem", "mix")}
DIVIDED = {3: "consecutive", 4: "sites"}
"""Table -> `split.institutions`: runs of one data set, or an institution a data set."""


@dataclass(frozen=True)
class PrintedGain:
    """A method on a data set.

    Attributes:
        accuracy: mean over institutions.
        sd: printed beside it; by the authors' code the mean over institutions of an institution's sd over runs.
        min_gain: smallest gain of an institution over self-training; None for self-training.
        improved: number of institutions with a gain, by the authors' code of 0 or more; None for self-training.
    """

    accuracy: float
    sd: float
    min_gain: float | None = None
    improved: int | None = None


GCFL_NUMBERS: Mapping[str, Mapping[str, PrintedGain]] = {
    "nci1": {
        "self-train": PrintedGain(0.6468, 0.053),
        "fedavg": PrintedGain(0.6474, 0.076, -0.1333, 14),
        "fedprox": PrintedGain(0.6437, 0.072, -0.2400, 16),
        "gcfl": PrintedGain(0.7326, 0.052, -0.0462, 26),
        "gcfl+": PrintedGain(0.7422, 0.053, -0.1143, 28),
    },
    "proteins": {
        "self-train": PrintedGain(0.7213, 0.058),
        "fedavg": PrintedGain(0.7490, 0.034, -0.0615, 6),
        "fedprox": PrintedGain(0.7556, 0.036, -0.0923, 7),
        "gcfl": PrintedGain(0.7739, 0.043, -0.0545, 8),
        "gcfl+": PrintedGain(0.7776, 0.037, -0.0154, 9),
    },
    "imdb-binary": {
        "self-train": PrintedGain(0.7654, 0.057),
        "fedavg": PrintedGain(0.7596, 0.049, -0.0800, 5),
        "fedprox": PrintedGain(0.7746, 0.048, -0.0600, 6),
        "gcfl": PrintedGain(0.8256, 0.059, 0.0182, 10),
        "gcfl+": PrintedGain(0.8299, 0.052, 0.0167, 10),
    },
    "molecules": {
        "self-train": PrintedGain(0.7543, 0.017),
        "fedavg": PrintedGain(0.7524, 0.026, -0.0132, 3),
        "fedprox": PrintedGain(0.7668, 0.032, -0.0054, 5),
        "gcfl": PrintedGain(0.7661, 0.016, 0.0010, 7),
        "gcfl+": PrintedGain(0.7745, 0.030, 0.0010, 7),
    },
    "biochem": {
        "self-train": PrintedGain(0.7129, 0.016),
        "fedavg": PrintedGain(0.6944, 0.027, -0.1467, 4),
        "fedprox": PrintedGain(0.7053, 0.026, -0.1000, 5),
        "gcfl": PrintedGain(0.7172, 0.019, -0.0700, 7),
        "gcfl+": PrintedGain(0.7312, 0.031, -0.0300, 8),
    },
    "mix": {
        "self-train": PrintedGain(0.7001, 0.034),
        "fedavg": PrintedGain(0.6886, 0.023, -0.1233, 5),
        "fedprox": PrintedGain(0.6897, 0.026, -0.1367, 5),
        "gcfl": PrintedGain(0.7056, 0.019, -0.1400, 10),
        "gcfl+": PrintedGain(0.7121, 0.021, -0.0233, 10),
    },
}
"""Cohort -> method of Tables 3 and 4."""

INSTITUTIONS = {"nci1": 30, "proteins": 10, "imdb-binary": 10, "molecules": 7, "biochem": 10, "mix": 13}
THRESHOLDS: Mapping[str, tuple[float, float, int]] = {
    "nci1": (0.04, 0.08, 5),
    "proteins": (0.03, 0.06, 10),
    "imdb-binary": (0.025, 0.045, 5),
    "molecules": (0.07, 0.28, 5),
    "biochem": (0.07, 0.35, 5),
    "mix": (0.08, 0.40, 5),
}
"""Cohort -> eps1, eps2 and the rounds of GCFL+'s sequences."""


def printed_gains(outline: ExperimentOutline, cohort: str) -> dict[str, PrintedGain]:
    """Variant -> its printed numbers, for variants with the settings of a row of the table of `cohort`, in any case.

    An experiment with another evaluation than the paper's has no printed numbers.
    """
    if outline.paper != GCFL_PAPER or not evaluated_as_gcfl(outline, cohort):
        return {}
    rows = GCFL_NUMBERS[cohort.lower()]
    methods = {variant.name: printed_method(variant, cohort.lower()) for variant in outline.variants}
    return {name: rows[method] for name, method in methods.items() if method in rows}


def evaluated_as_gcfl(outline: ExperimentOutline, cohort: str) -> bool:
    """Whether the evaluation is that of the cohort's table: true labels, one test set, the paper's institutions."""
    number = table_of(cohort)
    alike = number is not None and outline.split["institutions"] == DIVIDED[number]
    return alike and outline.split["validation"] == "holdout" and outline.labels != "permuted"


def table_of(cohort: str) -> int | None:
    """Number of the table that has this cohort; None without one."""
    return next((number for number, names in TABLES.items() if cohort.lower() in names), None)


def printed_method(variant: ShownVariant, cohort: str) -> str:
    """The paper's method with the settings of this variant, thresholds as for this cohort; empty: none.

    Settings of stages do not count: molecules have none, and the paper has no brains.
    """
    changed = {key: value for key, value in changed_settings(variant).items() if "." not in key}
    if variant.method == "selftrain":
        return "" if changed else "self-train"
    if variant.method == "fedavg-gin":
        return {(): "fedavg", (("proximal", 0.01),): "fedprox"}.get(tuple(changed.items()), "")
    others = changed.keys() - {"similarity", "eps1", "eps2", "sequence"}
    if variant.method != "gcfl" or cohort not in THRESHOLDS or others:
        return ""
    *eps, sequence = THRESHOLDS[cohort]
    if [variant.setting("eps1"), variant.setting("eps2")] != eps:
        return ""
    if variant.setting("similarity") != "gradient_norms":
        return "gcfl"
    return "gcfl+" if variant.setting("sequence") == sequence else ""


def gcfl_source(cohort: str, institutions: int) -> str:
    """Where a cohort's numbers are printed, and that the paper has other institutions, where it has."""
    count = INSTITUTIONS[cohort.lower()]
    other = "" if count == institutions else f" It has {count} institutions, we have {institutions}."
    return f"{GCFL_SOURCE}, Table {table_of(cohort)}.{other}"


# What institutions gain over training alone, by the last model, by the paper's scoring, and as printed.

Values = Mapping[Hashable, Any]
Held = Mapping[Hashable, Values]
"""(variant, scoring) -> a row of the table."""

DRAWN_ANEW = (
    "Institutions are drawn anew in every repeat, so that one name is another institution in each: the smallest gain, "
    "the number of institutions better off and the deviations of single institutions are left out."
)


@dataclass(frozen=True)
class GainTable:
    """The table of one experiment.

    Attributes:
        rows: of every variant accuracy, smallest gain and institutions better off by the last model, the same by the
            paper's scoring, and as printed, if `source` is not empty.
        worth: what the paper's scoring adds.
        left_out: why nothing stands for single institutions; empty where it does.
        source: where the numbers are printed; empty without any.
    """

    rows: list[Row]
    worth: str
    left_out: str
    source: str


def read_gains(known: Known) -> GainTable | None:
    """The table of an experiment with clustered variants; None for any other."""
    outline = known.outline
    if "clients" not in outline.tables:
        return None
    return gain_table(pd.read_csv(outline.tables["clients"], sep="\t"), outline, known.cohort.name)


def gain_table(table: pd.DataFrame, outline: ExperimentOutline, cohort: str) -> GainTable:
    """The table from `evaluation._scores.COLUMNS`.

    Where repeats draw institutions anew, gains and spreads of institutions are left out: a mean over runs would join
    unrelated institutions.
    """
    variants, single = outline.variants, not outline.draws_anew
    by_scoring: Held = table.set_index(["variant", "scoring"]).to_dict("index")
    printed = printed_gains(outline, cohort)
    best = max(float(by_scoring[variant.name, LAST]["accuracy"]) for variant in variants)
    rows = []
    for variant in by_family(variants):
        last, best_kept = by_scoring[variant.name, LAST], by_scoring[variant.name, PAPER_SCORING]
        cells = [*_cells(last, single, best), *_cells(best_kept, single)]
        rows.append(Row(variant, (*cells, *(_printed_cells(printed.get(variant.name), cohort) if printed else ()))))
    source = gcfl_source(cohort, int(table["institutions"].max())) if printed else ""
    return GainTable(rows, worth_of_scoring(by_scoring, variants), "" if single else DRAWN_ANEW, source)


def worth_of_scoring(by_scoring: Held, variants: Sequence[ShownVariant]) -> str:
    """What scoring by the best of several models adds to the accuracy of each clustered variant."""
    parts = []
    for variant in variants:
        if variant.clusters:
            kept, last = (by_scoring[variant.name, scoring]["accuracy"] for scoring in (PAPER_SCORING, LAST))
            parts.append(f"{_added(float(kept - last))} to {variant.title}")
    added = listed(parts, "and")
    return f"Scoring by the best of several models on the test data adds {added}; the ranking uses the last model."


def _added(value: float) -> str:
    if round(value, EXACT) == 0:
        return "nothing"
    return short(value) if value >= 0.0005 else "less than .001"


def _cells(values: Values, single: bool, best: float | None = None) -> tuple[Cell, Cell, Cell]:
    accuracy, gain = float(values["accuracy"]), float(values["min_gain"])
    spreads = [float(values[name]) for name in (("sd", "institution_sd") if single else ("sd",))]
    note = " \u00b7 ".join(short(spread) for spread in spreads if np.isfinite(spread))
    marked = best is not None and round(accuracy - best, EXACT) == 0
    score = Cell(rounded(accuracy), accuracy, note, marked)
    if not single or not np.isfinite(gain):
        return score, Cell(NONE), Cell(NONE)
    improved, equal, count = (int(values[name]) for name in ("improved", "equal", "institutions"))
    better = Cell(f"{improved} of {count}", improved / count, f"{equal} equal" if equal else "")
    return score, Cell(signed(gain), gain), better


def _printed_cells(printed: PrintedGain | None, cohort: str) -> tuple[Cell, Cell, Cell]:
    if printed is None:
        return Cell(NONE), Cell(NONE), Cell(NONE)
    accuracy = Cell(rounded(printed.accuracy), printed.accuracy, short(printed.sd), printed=True)
    if printed.min_gain is None or printed.improved is None:
        return accuracy, Cell(NONE), Cell(NONE)
    count = INSTITUTIONS[cohort.lower()]
    better = Cell(f"{printed.improved} of {count}", printed.improved / count, printed=True)
    return accuracy, Cell(signed(printed.min_gain), printed.min_gain, printed=True), better


# What GCFL brings to the report: gains of institutions by two scorings, and the numbers of its Tables 3 and 4.

GCFL = Citation(
    "Xie H, Ma J, Xiong L, Yang C (2021). Federated graph classification over non-IID graphs. Advances in Neural "
    "Information Processing Systems 34, 18839\u201318852."
)


PAPER = Paper(
    name="gcfl",
    templates=PackageLoader("brainfed.papers", "templates/gcfl"),
    panels=(
        Panel("gains", Place.AFTER_SCORES, read_gains, "gcfl/gains.html.j2"),
        Panel(
            "two-scorings", Place.PROVENANCE, lambda known: "clients" in known.outline.tables, "gcfl/scoring.html.j2"
        ),
    ),
    cites=(Cited((GCFL,), frozenset({"gcfl", "fedavg-gin", "selftrain", "central-gin"})),),
)
