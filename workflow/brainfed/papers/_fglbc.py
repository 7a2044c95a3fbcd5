"""What FGLBC adds to the report: printed accuracies, scores at privacy budgets, entropy of its server's weights."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jinja2 import PackageLoader

from brainfed.reporting import (
    NONE,
    Citation,
    Cited,
    ExperimentOutline,
    Paper,
    Scored,
    ShownVariant,
    by_family,
    short,
    significant,
    significant_digits,
)
from brainfed.reporting.panels import Known, Panel, Place
from brainfed.reporting.tables import Cell, Row, score_cell, spent
from brainfed.reporting.text import listed
from brainfed.runtime import read_json, read_table

# Accuracies printed in the paper of FGLBC, by a variant's method, privacy budget and number of institutions.
#
# NCANDA and the Human Connectome Project are access-restricted: on any other cohort they are numbers of other data.

FGLBC_PAPER = "fglbc"
"""An experiment's `paper` that has these numbers beside it."""
FGLBC_SOURCE = (
    "Chen and Su, A federated graph learning framework for brain connectome, Proceedings of the Annual Meeting of the "
    "Cognitive Science Society 46, 2024, Tables 1 to 3"
)
DATA = ("NCANDA", "HCP-Rest", "HCP-Task")
TASK = DATA.index("HCP-Task")
INSTITUTIONS, BUDGET = 4, 10.0
"""Of Table 1; Table 2 has other numbers of institutions, Table 3 other budgets."""

METHODS: Mapping[str, str] = {"fglbc": "FGLBC", "fedgnn": "FedGNN+DP", "fedavg-stgcn": "FedAvg+DP"}
"""Our method -> the paper's."""

BUDGETS: Mapping[str, Mapping[float, tuple[float, float, float]]] = {
    "fglbc": {
        2: (0.7098, 0.7927, 0.8012),
        5: (0.7365, 0.8398, 0.8447),
        10: (0.7816, 0.8934, 0.9325),
        20: (0.8054, 0.9165, 0.9373),
    },
    "fedgnn": {
        2: (0.6548, 0.7267, 0.7312),
        5: (0.6899, 0.7605, 0.8054),
        10: (0.7422, 0.8312, 0.8628),
        20: (0.7615, 0.8465, 0.8881),
    },
    "fedavg-stgcn": {
        2: (0.5960, 0.6578, 0.7079),
        5: (0.6348, 0.7216, 0.7468),
        10: (0.7031, 0.8015, 0.8297),
        20: (0.7233, 0.8292, 0.8502),
    },
}
"""Tables 1 and 3: method -> epsilon -> accuracy on `DATA`, with four institutions."""

COUNTS: Mapping[str, Mapping[int, float]] = {
    "fglbc": {2: 0.9102, 4: 0.9324, 6: 0.9310, 8: 0.9304, 10: 0.9298},
    "fedgnn": {2: 0.8421, 4: 0.8623, 6: 0.8352, 8: 0.8174, 10: 0.7983},
    "fedavg-stgcn": {2: 0.8007, 4: 0.8297, 6: 0.8017, 8: 0.7793, 10: 0.7257},
}
"""Table 2: method -> institutions -> accuracy on HCP-Task, with a budget of 10."""


def printed_accuracies(outline: ExperimentOutline, variant: ShownVariant) -> tuple[float | None, ...]:
    """The printed accuracy of a variant on each of `DATA`; None where the paper has none.

    A variant has numbers if its noise follows a budget that the paper has; the network's size does not count, as the
    paper leaves it out.
    """
    budgets = BUDGETS.get(variant.method, {})
    epsilon, count = variant.setting("epsilon"), int(outline.split.get("count", 0))
    if variant.setting("privacy") not in ("paper", "accountant") or outline.split["institutions"] != "random":
        return (None,) * len(DATA)
    if count == INSTITUTIONS:
        return budgets.get(epsilon, (None,) * len(DATA))
    alone = COUNTS.get(variant.method, {}).get(count) if epsilon == BUDGET else None
    return tuple(alone if place == TASK else None for place in range(len(DATA)))


# How far a server's weighted mean is from a plain one: the entropy of its weights (FGLBC eq. 6).


@dataclass(frozen=True)
class SharesOfMean:
    """The weights of one variant's server.

    Attributes:
        variant: the variant.
        entropy: mean over rounds, folds and repeats of the entropy over that of equal weights of the institutions that
            took part; 1: a plain mean.
        least: the smallest of a round.
        largest: the largest weight of an institution in any round.
        equal: the weight of each institution in a plain mean.
    """

    variant: ShownVariant
    entropy: float
    least: float
    largest: float
    equal: float

    @property
    def compared(self) -> str:
        """What the server compares."""
        return "weights" if self.variant.setting("aggregation") == "printed" else "updates (ours)"


def shares_of_mean(variant: ShownVariant) -> SharesOfMean | None:
    """The weights in the histories of a variant; None where none are recorded, or one institution takes part."""
    tables = [read_table(path).assign(repeat=number) for number, path in enumerate(variant.histories)]
    tables = [table for table in tables if "weight" in table and table["weight"].notna().any()]
    if not tables:
        return None
    rows = pd.concat(tables).dropna(subset=["weight"])
    rounds = rows.groupby(["repeat", "fold", "round"])["weight"]
    institutions = rounds.agg(lambda weight: int((weight > 0).sum()))
    if institutions.max() < 2:
        return None
    terms = rows["weight"] * np.log(rows["weight"].where(rows["weight"] > 0, 1.0))
    entropy = -terms.groupby([rows["repeat"], rows["fold"], rows["round"]]).sum()
    shared = institutions > 1
    relative = entropy[shared] / np.log(institutions[shared])
    numbers = (relative.mean(), relative.min(), rows["weight"].max(), 1 / institutions.max())
    return SharesOfMean(variant, *map(float, numbers))


# What every private method reaches at each privacy budget, and which is best at each.

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
    """The table of an experiment with private variants or weighted means; None for any other."""
    outline, scored = known.outline, known.scored
    private = [each for each in outline.variants if each.setting("privacy") not in (None, "none")]
    shares = [weights for variant in outline.variants if (weights := shares_of_mean(variant)) is not None]
    if not private and not shares:
        return None
    source = FGLBC_SOURCE if outline.paper == FGLBC_PAPER else ""
    rows = [Row(variant, _cells(outline, scored, variant, printed=bool(source))) for variant in by_family(private)]
    said = wrapped_sentence(outline.variants)
    return BudgetTable(best_by_budget(private, scored), rows, DATA if source else (), source, said, shares)


def wrapped_sentence(variants: Sequence[ShownVariant]) -> str:
    """The scans that networks on region series repeat to fill a window, for each length of a window."""
    wraps: dict[int, int] = {}
    for variant in variants:
        if variant.setting("window") is not None and variant.costs:
            wraps[int(variant.setting("window"))] = int(read_json(variant.costs[0])["counts"]["wrapped_subjects"])
    parts = [f"{scans} shorter than the window of {window} volumes" for window, scans in sorted(wraps.items()) if scans]
    if not parts:
        return ""
    return f"Scans that are repeated from their beginning to fill a window: {listed(parts, 'and')}."


def best_by_budget(private: Sequence[ShownVariant], scored: Scored) -> list[str]:
    """`At epsilon = 5: ...` for every budget that the accountant keeps, its methods from the best on."""
    kept = [variant for variant in private if variant.setting("privacy") == "accountant"]
    sentences = []
    for budget in sorted({float(variant.setting("epsilon")) for variant in kept}):
        own = [(each, scored.interval(each.name, METRIC)) for each in kept if each.setting("epsilon") == budget]
        ranked = sorted((pair for pair in own if np.isfinite(pair[1].mean)), key=lambda pair: -pair[1].mean)
        if ranked:
            parts = [f"{variant.unswept_title} {interval}" for variant, interval in ranked]
            above = any(interval.known and interval.low > 0.5 for _, interval in ranked)
            added = _ahead([variant for variant, _ in ranked], scored) if above else " No interval lies above 0.5."
            sentences.append(f"At \u03b5 = {budget:g}, by AUC: {listed(parts, 'and')}.{added}")
    return sentences


def _ahead(ranked: Sequence[ShownVariant], scored: Scored) -> str:
    """The methods that the best one is significantly ahead of; empty without others, or with too few runs."""
    best, *others = ranked
    tests = scored.differences(best.name, [each.name for each in others], METRIC) if others else {}
    if not any(np.isfinite(p) for _, p in tests.values()):
        return ""
    behind = [each.unswept_title for each in others if significant(tests[each.name][1])]
    return f" {best.unswept_title} is significantly ahead of {listed(behind, 'and') if behind else 'none of them'}."


def _cells(outline: ExperimentOutline, scored: Scored, variant: ShownVariant, *, printed: bool) -> tuple[Cell, ...]:
    budget = spent(variant)
    epsilon = budget[0] if budget else np.nan
    planned = float(variant.setting("epsilon"))
    cells = [
        Cell(f"{planned:g}", planned),
        Cell(significant_digits(epsilon, 3) if np.isfinite(epsilon) else NONE, epsilon, marked=epsilon > planned),
        *(score_cell(scored.interval(variant.name, metric)) for metric in ("accuracy", METRIC)),
    ]
    if printed:
        numbers = printed_accuracies(outline, variant)
        cells += [Cell(NONE) if each is None else Cell(short(each), each, printed=True) for each in numbers]
    return tuple(cells)


# What FGLBC brings to the report: scores at privacy budgets, its server's weights, and its printed accuracies.

FGLBC = (
    Citation(
        "Chen C, Su S (2024). A federated graph learning framework for brain connectome. Proceedings of the Annual "
        "Meeting of the Cognitive Science Society 46."
    ),
    Citation(
        "Gadgil S, Zhao Q, Pfefferbaum A, Sullivan EV, Adeli E, Pohl KM (2020). Spatio-temporal graph convolution for "
        "resting-state fMRI analysis. Medical Image Computing and Computer Assisted Intervention, 528\u2013538.",
        "10.1007/978-3-030-59728-3_52",
    ),
)

PAPER = Paper(
    name="fglbc",
    templates=PackageLoader("brainfed.papers", "templates/fglbc"),
    panels=(Panel("budgets", Place.AFTER_SCORES, read_budgets, "fglbc/budgets.html.j2"),),
    cites=(Cited(FGLBC, frozenset({"fglbc", "fedavg-stgcn", "fedgnn", "stgcn-local", "stgcn-central"})),),
)
