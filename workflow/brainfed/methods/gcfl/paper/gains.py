"""What institutions gain over training alone, by the last model, by the paper's scoring, and as printed."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from brainfed.evaluation.scorings import EXACT, LAST, PAPER
from brainfed.methods.gcfl.paper.numbers import (
    INSTITUTIONS,
    PrintedGain,
    gcfl_source,
    printed_gains,
)
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.panels.known import Known
from brainfed.reporting.rounding import NONE, rounded, short, signed
from brainfed.reporting.tables.scores import Cell, Row
from brainfed.reporting.text.baselines import listed
from brainfed.reporting.variants import ShownVariant, by_family

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
    """The table from `evaluation.scorings.COLUMNS`.

    Args:
        table: of all variants.
        outline: the experiment. Where its repeats draw institutions anew, gains and spreads of institutions are left
            out: a mean over runs would join unrelated institutions.
        cohort: name of the cohort.
    """
    variants, single = outline.variants, not outline.draws_anew
    held: Held = table.set_index(["variant", "scoring"]).to_dict("index")
    printed = printed_gains(outline, cohort)
    best = max(float(held[variant.name, LAST]["accuracy"]) for variant in variants)
    rows = []
    for variant in by_family(variants):
        last, best_kept = held[variant.name, LAST], held[variant.name, PAPER]
        cells = [*_cells(last, single, best), *_cells(best_kept, single)]
        rows.append(Row(variant, (*cells, *(_printed_cells(printed.get(variant.name), cohort) if printed else ()))))
    institutions = int(table["institutions"].max())
    return GainTable(
        rows,
        worth_of_scoring(held, variants),
        "" if single else DRAWN_ANEW,
        gcfl_source(cohort, institutions) if printed else "",
    )


def worth_of_scoring(held: Held, variants: Sequence[ShownVariant]) -> str:
    """What scoring by the best of several models adds to the accuracy of each clustered variant."""
    added = [
        (variant, float(held[variant.name, PAPER]["accuracy"] - held[variant.name, LAST]["accuracy"]))
        for variant in variants
        if variant.clusters
    ]
    parts = listed([f"{_added(value)} to {variant.title}" for variant, value in added], "and")
    return f"Scoring by the best of several models on the test data adds {parts}; the ranking uses the last model."


def _added(value: float) -> str:
    if round(value, EXACT) == 0:
        return "nothing"
    return short(value) if value >= 0.0005 else "less than .001"


def _cells(values: Values, single: bool, best: float | None = None) -> tuple[Cell, Cell, Cell]:
    accuracy, gain = float(values["accuracy"]), float(values["min_gain"])
    spreads = [float(values[name]) for name in (("sd", "institution_sd") if single else ("sd",))]
    note = " \u00b7 ".join(short(spread) for spread in spreads if np.isfinite(spread))
    marked = best is not None and round(accuracy - best, EXACT) == 0
    if not single or not np.isfinite(gain):
        return Cell(rounded(accuracy), accuracy, note, marked), Cell(NONE), Cell(NONE)
    improved, equal, count = (int(values[name]) for name in ("improved", "equal", "institutions"))
    return (
        Cell(rounded(accuracy), accuracy, note, marked),
        Cell(signed(gain), gain),
        Cell(f"{improved} of {count}", improved / count, f"{equal} equal" if equal else ""),
    )


def _printed_cells(printed: PrintedGain | None, cohort: str) -> tuple[Cell, Cell, Cell]:
    if printed is None:
        return Cell(NONE), Cell(NONE), Cell(NONE)
    accuracy = Cell(rounded(printed.accuracy), printed.accuracy, short(printed.sd), printed=True)
    if printed.min_gain is None or printed.improved is None:
        return accuracy, Cell(NONE), Cell(NONE)
    count = INSTITUTIONS[cohort.lower()]
    return (
        accuracy,
        Cell(signed(printed.min_gain), printed.min_gain, printed=True),
        Cell(f"{printed.improved} of {count}", printed.improved / count, printed=True),
    )
