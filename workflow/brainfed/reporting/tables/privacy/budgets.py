"""What every private method reaches at each privacy budget, and which is best at each."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from brainfed.reporting.intervals import Interval
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.rounding import NONE, short
from brainfed.reporting.scored import Scored
from brainfed.reporting.tables.privacy.fglbc_numbers import DATA, FGLBC_PAPER, FGLBC_SOURCE, printed_accuracies
from brainfed.reporting.tables.privacy.swa_entropy import SharesOfMean, shares_of_mean
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
        shares: how far weighted means of the server are from plain ones.
    """

    answers: list[str]
    rows: list[Row]
    data: tuple[str, ...]
    source: str
    shares: list[SharesOfMean]


def read_budgets(outline: ExperimentOutline, scored: Scored) -> BudgetTable | None:
    """The table of an experiment with private variants; None for any other."""
    private = [variant for variant in outline.variants if is_private(variant)]
    shares = [found for variant in outline.variants if (found := shares_of_mean(variant)) is not None]
    if not private and not shares:
        return None
    source = FGLBC_SOURCE if outline.paper == FGLBC_PAPER else ""
    rows = [Row(variant, _cells(outline, scored, variant, printed=bool(source))) for variant in by_family(private)]
    return BudgetTable(best_by_budget(private, scored), rows, DATA if source else (), source, shares)


def is_private(variant: ShownVariant) -> bool:
    """Whether a variant trains with differential privacy."""
    return variant.setting("privacy") not in (None, "none")


def best_by_budget(private: Sequence[ShownVariant], scored: Scored) -> list[str]:
    """`At epsilon = 5: ...` for every budget that the accountant keeps, with the best and the second best."""
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
            chance = "" if above else " None is above chance beyond its interval."
            found.append(f"At \u03b5 = {budget:g}, by AUC: {listed(parts, 'and')}.{chance}")
    return found


def _plain(variant: ShownVariant) -> str:
    return variant.unswept_title


def _cells(outline: ExperimentOutline, scored: Scored, variant: ShownVariant, *, printed: bool) -> tuple[Cell, ...]:
    spent = spent_epsilon(variant)
    planned = float(variant.setting("epsilon"))
    accuracy, auc = (scored.interval(variant.name, metric) for metric in ("accuracy", METRIC))
    cells = [
        Cell(f"{planned:g}", planned),
        Cell(f"{spent:.3g}" if np.isfinite(spent) else NONE, spent, marked=spent > planned),
        Cell(accuracy.text, accuracy.mean, _range(accuracy)),
        Cell(auc.text, auc.mean, _range(auc)),
    ]
    if printed:
        numbers = printed_accuracies(outline, variant)
        cells += [Cell(NONE) if each is None else Cell(short(each), each, printed=True) for each in numbers]
    return tuple(cells)


def _range(found: Interval) -> str:
    return str(found).removeprefix(found.text).strip() if found.known else ""


def spent_epsilon(variant: ShownVariant) -> float:
    """Largest epsilon that an institution spent in a fold of any repeat; NaN without a record."""
    rows = [row for path in variant.privacy for row in pd.read_json(path).to_dict("records")]
    return max((float(row["epsilon_spent"]) for row in rows), default=np.nan)
