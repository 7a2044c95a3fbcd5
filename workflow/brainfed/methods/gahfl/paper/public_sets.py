"""What methods with a public set reach beside the public set alone and the paper's numbers, and who taught them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from brainfed.evaluation.scores import POOLED
from brainfed.methods.gahfl.paper.numbers import (
    GAHFL_PAPER,
    GAHFL_SOURCE,
    SWAPPED,
    paper_cohort_of,
    printed_scores,
)
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.panels.known import Known
from brainfed.reporting.rounding import NONE, rounded, short
from brainfed.reporting.scored import Scored, significant
from brainfed.reporting.tables.scores import Cell, Row
from brainfed.reporting.text.baselines import listed
from brainfed.reporting.variants import ShownVariant, by_family

ALONE = "recurrent-public"
METRICS = ("accuracy", "specificity", "recall", "auc")
NOTHING = 0.0005
"""Share of visits that the table shows as none."""


@dataclass(frozen=True)
class PublicTable:
    """The methods of an experiment that read a public set.

    Attributes:
        answers: how far federations are from the public subjects alone, a sentence for each share of them.
        taught: how often institutions taught the global network, a row for each federation.
        silent: titles of those that no institution taught in the last round.
        own_term: whether a method has the divergence from the consensus that Fed-ET lacks.
        rows: of every such variant the share of public subjects, our scores, and printed ones if `source` is not empty.
        source: where they are printed; empty without any.
        swapped: whether the printed sensitivity and specificity are of the other class.
        short: sentence on scans that are shorter than a crop; empty where none is.
    """

    answers: list[str]
    taught: list[Row]
    silent: list[str]
    own_term: bool
    rows: list[Row]
    source: str
    swapped: bool
    short: str


def public_sets(known: Known) -> PublicTable | None:
    """The table of an experiment with public subjects; None for any other, and for one on poison alone."""
    return read_public_sets(known.outline, known.scored, known.cohort.name)


def read_public_sets(outline: ExperimentOutline, scored: Scored, cohort: str) -> PublicTable | None:
    """The table from an experiment's scores; `cohort` is the name of its cohort."""
    public = [
        variant
        for variant in outline.variants
        if ratio_of(variant) is not None and not variant.is_poisoned and not variant.is_defended
    ]
    if not public or (any(each.is_poisoned for each in outline.variants) and ALONE not in {v.method for v in public}):
        return None
    paper = paper_cohort_of(cohort) if outline.paper == GAHFL_PAPER else ""
    ordered = sorted(by_family(public), key=lambda variant: float(ratio_of(variant) or 0))
    federations = [(variant, shares) for variant in ordered if (shares := taught_shares(variant)) is not None]
    return PublicTable(
        against_public(public, scored),
        [Row(variant, _taught_cells(variant, shares)) for variant, shares in federations],
        silent(ordered),
        any((variant.setting("consensus") or 0) > 0 for variant in public),
        [Row(variant, _cells(scored, variant, paper)) for variant in ordered],
        GAHFL_SOURCE if paper else "",
        paper in SWAPPED,
        short_scans(outline.variants),
    )


def ratio_of(variant: ShownVariant) -> float | None:
    """The share of training subjects that are public; None without a public set."""
    ratio = variant.setting("public.ratio")
    return None if ratio is None else float(ratio)


def taught_shares(variant: ShownVariant) -> "pd.Series[float] | None":
    """Share of the visits of public samples that institutions taught in each round, mean over folds and repeats.

    None where no history has it: the method has no institutions, or its results are older than this number.
    """
    tables = [pd.read_parquet(path) for path in variant.histories]
    tables = [table for table in tables if "taught" in table and table["taught"].notna().any()]
    return pd.concat(tables).groupby("round")["taught"].mean() if tables else None


def silent(variants: Sequence[ShownVariant]) -> list[str]:
    """Titles of the federations that no institution taught in the last round."""
    found = [(variant.title, taught_shares(variant)) for variant in variants]
    return [title for title, shares in found if shares is not None and shares.iloc[-1] < NOTHING]


def against_public(public: Sequence[ShownVariant], scored: Scored) -> list[str]:
    """`30 % public: ...`: every federated method minus the network of the public subjects alone, by AUC."""
    found = []
    for ratio in sorted({ratio_of(variant) or 0.0 for variant in public}):
        own = [variant for variant in public if ratio_of(variant) == ratio]
        alone = next((variant for variant in own if variant.method == ALONE), None)
        others = [variant for variant in own if variant.method != ALONE]
        if alone is None or not others:
            continue
        tests = scored.differences(alone.name, [each.name for each in others], "auc")
        parts = [f"{tests[each.name][0].as_difference()} with {each.unswept_title}" for each in others]
        holding = [each.unswept_title for each in others if significant(tests[each.name][1])]
        state = f"significant: {listed(holding, 'and')}" if holding else "none is significant"
        reached = scored.interval(alone.name, "auc")
        found.append(
            f"{100 * ratio:g} % public: the public subjects alone reach an AUC of {reached}. "
            f"With institutions it is {listed(parts, 'and')}; {state}."
        )
    return found


def short_scans(variants: Sequence[ShownVariant]) -> str:
    """Scans that are shorter than the crops of recurrent networks; empty where there are none."""
    found: dict[tuple[str, int], int] = {}
    for variant in variants:
        if variant.setting("crops") is not None and variant.costs:
            counts = json.loads(Path(variant.costs[0]).read_text(encoding="utf-8"))["counts"]
            way = "dropped_subjects" if "dropped_subjects" in counts else "wrapped_subjects"
            found[way, int(variant.setting("length"))] = int(counts[way])
    words = {"wrapped_subjects": "repeated from their beginning", "dropped_subjects": "left out of training"}
    return " ".join(
        f"Scans shorter than a crop of {length} volumes, {words[way]}: {count}."
        for (way, length), count in sorted(found.items())
        if count
    )


def _taught_cells(variant: ShownVariant, shares: "pd.Series[float]") -> tuple[Cell, ...]:
    reading = [variant.setting(key) for key in ("self_evaluation", "pool")]
    text = [f"by {reading[0]}", f"one {reading[1]}"] if all(reading) else [NONE, NONE]
    chosen = [shares.iloc[0], shares.iloc[1] if len(shares) > 1 else np.nan, shares.iloc[-1], shares.mean()]
    ratio = ratio_of(variant) or 0.0
    return (
        Cell(f"{100 * ratio:g} %", ratio),
        *map(Cell, text),
        *(Cell(f"{rounded(100 * each, 1)} %" if np.isfinite(each) else NONE, each) for each in chosen),
    )


def _cells(scored: Scored, variant: ShownVariant, paper: str) -> tuple[Cell, ...]:
    ratio = ratio_of(variant) or 0.0
    own = [scored.interval(variant.name, metric, POOLED) for metric in METRICS]
    cells = [Cell(f"{100 * ratio:g} %", ratio)]
    cells += [
        Cell(each.text, each.mean, str(each).removeprefix(each.text).strip() if each.known else "") for each in own
    ]
    if paper:
        printed = printed_scores(paper, variant)
        cells += [
            Cell(NONE, np.nan, printed=True) if printed is None else Cell(short(value), value, printed=True)
            for value in (printed or (np.nan,) * len(METRICS))
        ]
    return tuple(cells)
