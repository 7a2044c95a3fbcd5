"""Accuracies printed in the paper of FGLBC, by a variant's method, privacy budget and number of institutions.

NCANDA and the Human Connectome Project are access-restricted: on any other cohort they are numbers of other data.
"""

from collections.abc import Mapping

from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.variants import ShownVariant

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
