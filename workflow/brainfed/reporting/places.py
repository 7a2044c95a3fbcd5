"""Methods in front: coloured where all others are grey."""

from collections.abc import Sequence

import pandas as pd

from brainfed.reporting.intervals import best
from brainfed.reporting.text.answer import ALONE, POOLED, Answer
from brainfed.reporting.variants import ShownVariant


def in_front(answer: Answer) -> list[ShownVariant]:
    """The best federated method, and the strongest on pooled data and alone: coloured where all others are grey."""
    if answer.chosen is None:
        return []
    beside = [found.other for role in (POOLED, ALONE) if (found := answer.against(role)) is not None]
    return [answer.chosen, *beside]


def strongest_by_place(runs: pd.DataFrame, variants: Sequence[ShownVariant]) -> list[ShownVariant]:
    """The federated, the pooled and the local variant with the highest mean AUC, without controls and poisoned ones."""
    found = []
    for place in ("federated", "central", "local"):
        there = [one for one in variants if one.place == place and not one.is_control and not one.is_poisoned]
        name = best(runs, [one.name for one in there], "auc")
        found += [one for one in there if one.name == name]
    return found
