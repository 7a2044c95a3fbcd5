"""Every federated method with its twins: the same or the nearest model, trained locally and on pooled data."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from brainfed.reporting.intervals import Interval
from brainfed.reporting.scored import Scored
from brainfed.reporting.text.answer import METRIC
from brainfed.reporting.text.baselines import listed
from brainfed.reporting.variants import ShownVariant, by_family

SIDES = {"alone": "alone", "pooled": "pooled data"}
ACCURACY = "accuracy"


@dataclass(frozen=True)
class TwinRow:
    """One federated method and one twin.

    Attributes:
        variant: the federated method.
        score: its mean AUC.
        side: `alone` or `pooled data`.
        twin: the twin; None if the experiment has none.
        twin_score: the twin's mean AUC.
        auc: federated minus twin, AUC.
        accuracy: federated minus twin, accuracy.
        better: number of institutions with a higher mean AUC with federation, and the total.
        missing: reason for a missing twin, or the variant to add to the config.
    """

    variant: ShownVariant
    score: Interval
    side: str
    twin: ShownVariant | None = None
    twin_score: Interval | None = None
    auc: Interval | None = None
    accuracy: Interval | None = None
    better: tuple[int, int] = (0, 0)
    missing: str = ""

    @property
    def equal(self) -> bool:
        """Whether method and twin have one AUC in every run."""
        return self.auc is not None and self.auc.nothing


def twin_rows(variants: Sequence[ShownVariant], scored: Scored, gain: pd.DataFrame) -> list[TwinRow]:
    """Two rows a federated method.

    Args:
        variants: all variants of the experiment.
        scored: its runs.
        gain: `scores.GAIN_COLUMNS`.
    """
    held = {variant.name: variant for variant in variants}
    return [
        _row(variant, side, title, held, scored, gain)
        for variant in by_family(variants)
        if variant.twins
        for side, title in SIDES.items()
        if side in variant.twins
    ]


def _row(
    variant: ShownVariant, side: str, title: str, held: dict[str, ShownVariant], scored: Scored, gain: pd.DataFrame
) -> TwinRow:
    score, twin = scored.interval(variant.name, METRIC), variant.twin(side)
    if twin.name not in held:
        return TwinRow(variant, score, title, missing=twin.missing)
    chosen = (gain["variant"] == variant.name) & (gain["against"] == side) & (gain["metric"] == METRIC)
    means = gain[chosen]["mean"].dropna()
    return TwinRow(
        variant,
        score,
        title,
        held[twin.name],
        scored.interval(twin.name, METRIC),
        scored.difference(variant.name, twin.name, METRIC),
        scored.difference(variant.name, twin.name, ACCURACY),
        (int((means > 0).sum()), len(means)),
    )


def missing_twins(rows: Sequence[TwinRow]) -> list[str]:
    """A sentence for the methods that lack the same twins: which, and what to add."""
    lacking: dict[str, list[TwinRow]] = {}
    for row in rows:
        if row.twin is None:
            lacking.setdefault(row.variant.title, []).append(row)
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for title, own in lacking.items():
        alike.setdefault(tuple((row.side, row.missing) for row in own), []).append(title)
    return [_lacks(titles, dict(sides)) for sides, titles in alike.items()]


def _lacks(titles: Sequence[str], missing: dict[str, str]) -> str:
    """A sentence such as `FedGCN and FedNI have no twin alone or on pooled data here: add localgcn and centralgcn`."""
    sides = " or ".join("alone" if side == SIDES["alone"] else f"on {side}" for side in missing)
    verb = "have" if len(titles) > 1 else "has"
    added = [reason.removeprefix("add ") for reason in missing.values() if reason.startswith("add ")]
    reasons = [reason for reason in missing.values() if not reason.startswith("add ")]
    what = "; ".join([*reasons, *([f"add {listed(added, 'and')}"] if added else [])])
    return f"{listed(list(titles), 'and')} {verb} no twin {sides} here{f': {what}' if what else ''}."


def twin_notes(variants: Sequence[ShownVariant]) -> list[str]:
    """Other differences between federated methods and their twins than the visible data, each sentence once."""
    notes: dict[str, list[str]] = {}
    for variant in by_family(variants):
        for side in SIDES:
            for sentence in variant.twin(side).differs:
                named = notes.setdefault(sentence, [])
                named += [variant.title] if variant.title not in named else []
    return [f"{', '.join(titles)}: {note}" for note, titles in notes.items()]
