"""What every private method reaches at each privacy budget, and which is best at each."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from brainfed.methods.fglbc.paper.numbers import DATA, FGLBC_PAPER, FGLBC_SOURCE, printed_accuracies
from brainfed.methods.fglbc.paper.swa_entropy import SharesOfMean, shares_of_mean
from brainfed.reporting.intervals import Interval
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.panels.known import Known
from brainfed.reporting.rounding import NONE, short, significant_digits
from brainfed.reporting.scored import Scored, significant
from brainfed.reporting.tables.audit import spent
from brainfed.reporting.tables.scores import Cell, Row
from brainfed.reporting.text.baselines import listed
from brainfed.reporting.variants import ShownVariant, by_family

METRIC = "auc"


@dataclass(frozen=True)
class BudgetTable:
    """The private methods of an experiment.

    Attributes:
        answers: a sentence for each budget.
        rows: of every private variant its planned and spent epsilon, its accuracy, its AUC, and printed accuracies, if
            `source` is not empty.
        data: data sets of the printed accuracies.
        source: where they are printed; empty without any.
        wrapped: sentence on scans that are shorter than a window; empty where none is.
        shares: how far weighted means of the server are from plain ones.
    """

    answers: list[str]
    rows: list[Row]
    data: tuple[str, ...]
    source: str
    wrapped: str
    shares: list[SharesOfMean]


def read_budgets(known: Known) -> BudgetTable | None:
    """The table of an experiment with private variants; None for any other."""
    outline, scored = known.outline, known.scored
    private = [variant for variant in outline.variants if is_private(variant)]
    shares = [found for variant in outline.variants if (found := shares_of_mean(variant)) is not None]
    if not private and not shares:
        return None
    source = FGLBC_SOURCE if outline.paper == FGLBC_PAPER else ""
    rows = [Row(variant, _cells(outline, scored, variant, printed=bool(source))) for variant in by_family(private)]
    return BudgetTable(
        best_by_budget(private, scored),
        rows,
        DATA if source else (),
        source,
        wrapped_sentence(outline.variants),
        shares,
    )


def wrapped_sentence(variants: Sequence[ShownVariant]) -> str:
    """The scans that networks on region series repeat to fill a window, for each length of a window."""
    found: dict[int, int] = {}
    for variant in variants:
        if variant.setting("window") is not None and variant.costs:
            counts = json.loads(Path(variant.costs[0]).read_text(encoding="utf-8"))["counts"]
            found[int(variant.setting("window"))] = int(counts["wrapped_subjects"])
    parts = [f"{scans} shorter than the window of {window} volumes" for window, scans in sorted(found.items()) if scans]
    if not parts:
        return ""
    return f"Scans that are repeated from their beginning to fill a window: {listed(parts, 'and')}."


def is_private(variant: ShownVariant) -> bool:
    """Whether a variant trains with differential privacy."""
    return variant.setting("privacy") not in (None, "none")


def best_by_budget(private: Sequence[ShownVariant], scored: Scored) -> list[str]:
    """`At epsilon = 5: ...` for every budget that the accountant keeps, its methods from the best on."""
    kept = [variant for variant in private if variant.setting("privacy") == "accountant"]
    found = []
    for budget in sorted({float(variant.setting("epsilon")) for variant in kept}):
        own = [
            (variant, scored.interval(variant.name, METRIC)) for variant in kept if variant.setting("epsilon") == budget
        ]
        ranked = sorted((pair for pair in own if np.isfinite(pair[1].mean)), key=lambda pair: -pair[1].mean)
        if ranked:
            parts = [f"{_plain(variant)} {interval}" for variant, interval in ranked]
            above = [variant for variant, interval in ranked if interval.known and interval.low > 0.5]
            chance = "" if above else " No interval lies above 0.5."
            ahead = "" if not above else _ahead([variant for variant, _ in ranked], scored)
            found.append(f"At \u03b5 = {budget:g}, by AUC: {listed(parts, 'and')}.{chance}{ahead}")
    return found


def _ahead(ranked: Sequence[ShownVariant], scored: Scored) -> str:
    """The methods that the best one is significantly ahead of; empty without others, or with too few runs."""
    best, *others = ranked
    tests = scored.differences(best.name, [each.name for each in others], METRIC) if others else {}
    if not any(np.isfinite(p) for _, p in tests.values()):
        return ""
    behind = [_plain(each) for each in others if significant(tests[each.name][1])]
    return f" {_plain(best)} is significantly ahead of {listed(behind, 'and') if behind else 'none of them'}."


def _plain(variant: ShownVariant) -> str:
    return variant.unswept_title


def _cells(outline: ExperimentOutline, scored: Scored, variant: ShownVariant, *, printed: bool) -> tuple[Cell, ...]:
    found = spent(variant)
    epsilon = found[0] if found else np.nan
    planned = float(variant.setting("epsilon"))
    accuracy, auc = (scored.interval(variant.name, metric) for metric in ("accuracy", METRIC))
    cells = [
        Cell(f"{planned:g}", planned),
        Cell(significant_digits(epsilon, 3) if np.isfinite(epsilon) else NONE, epsilon, marked=epsilon > planned),
        Cell(accuracy.text, accuracy.mean, _range(accuracy)),
        Cell(auc.text, auc.mean, _range(auc)),
    ]
    if printed:
        numbers = printed_accuracies(outline, variant)
        cells += [Cell(NONE) if each is None else Cell(short(each), each, printed=True) for each in numbers]
    return tuple(cells)


def _range(found: Interval) -> str:
    return str(found).removeprefix(found.text).strip() if found.known else ""
