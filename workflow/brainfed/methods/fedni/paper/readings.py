"""Readings of FedNI's open settings, ordered by the distance of their accuracies to its Table V.

A reading is a set of settings that differ from the shipped ones. A method uses those that it has:
FedMLP keeps its score if a reading changes the graph alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from brainfed.methods.fedni.paper.numbers import FEDNI_TABLE_V, PAPER_METRICS, paper_cohort
from brainfed.methods.fedni.paper.printed import as_in_the_paper
from brainfed.reporting.intervals import Interval
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.rounding import short
from brainfed.reporting.scored import Scored
from brainfed.reporting.sweep_titles import setting_in_words
from brainfed.reporting.text.baselines import listed
from brainfed.reporting.variants import ShownVariant, changed_settings
from brainfed.runtime.artefacts import canonical_json

METRIC = "accuracy"
SHIPPED = "as shipped"

Changed = Mapping[str, Any]
"""Setting, such as `graph.sigma` -> its value."""


@dataclass(frozen=True)
class Reading:
    """One row.

    Attributes:
        title: title of its variants.
        settings: differences from the shipped settings, in words.
        scores: method -> accuracy; a method without a variant of this reading has none.
        unread: methods that have none of the settings.
        distance: mean absolute distance of the accuracies to the printed ones, over the methods that every reading has.
        nearest: whether its distance is the smallest.
    """

    title: str
    settings: str
    scores: Mapping[str, Interval]
    unread: frozenset[str]
    distance: float
    nearest: bool = False


@dataclass(frozen=True)
class Readings:
    """All readings of an experiment, the nearest first.

    Attributes:
        titles: method -> its title, in the order of Table V.
        printed: method -> the accuracy in the paper.
        compared: methods that every reading has; the distances are over these.
        rows: in ascending order of the distance; the shipped one first in a tie.
        same_collection: whether the paper's accuracies are of the collection that the cohort is from.
    """

    titles: Mapping[str, str]
    printed: Mapping[str, float]
    compared: tuple[str, ...]
    rows: tuple[Reading, ...]
    same_collection: bool

    @property
    def finding(self) -> str:
        """The nearest reading, and the distances of this and others."""
        first, last = self.rows[0], self.rows[-1]
        methods = listed([self.titles[name] for name in self.compared], "and")
        whose = "" if self.same_collection else " on another cohort"
        said = [
            f"Nearest to the paper\u2019s accuracies{whose} of {methods}: {first.title}, mean distance {_text(first)}"
        ]
        shipped = next((row for row in self.rows if not row.settings), first)
        if shipped is not first:
            said.append(f"{shipped.title} {_text(shipped)}")
        return "; ".join([*said, f"farthest: {last.title}, {_text(last)}"])

    @property
    def sentences(self) -> str:
        """The finding, and the uncertainty of the distances."""
        widths = [(score.high - score.low) / 2 for row in self.rows for score in row.scores.values() if score.known]
        if not widths:
            return f"{self.finding}."
        return (
            f"{self.finding}. A single accuracy here has a 95 % interval of about \u00b1 {short(median(widths))}. "
            "Distances are compared without a test: they describe what the paper may have done."
        )


def find_readings(outline: ExperimentOutline, scored: Scored) -> Readings | None:
    """The readings of an experiment; None if the evaluation is not the paper's, or with fewer than two readings."""
    collection, same_collection = paper_cohort(outline.cohort)
    printed = FEDNI_TABLE_V[collection]
    shown = [variant for variant in outline.variants if variant.method in printed]
    if not as_in_the_paper(outline):
        return None
    found = _distinct(shown)
    methods = [name for name in printed if any(variant.method == name for variant in shown)]
    usual = {variant.method: variant.shipped for variant in shown}
    held = {(variant.method, _key(changed_settings(variant))): variant for variant in shown}
    scores = [
        {
            method: scored.interval(variant.name, METRIC)
            for method in methods
            if (variant := held.get((method, _key(_of_method(changed, usual[method]))))) is not None
        }
        for changed in found
    ]
    compared = tuple(method for method in methods if all(method in row for row in scores))
    if len(found) < 2 or not compared:
        return None
    accuracy = {method: printed[method][PAPER_METRICS.index(METRIC)][0] for method in methods}
    distances = [distance_to({name: row[name].mean for name in compared}, accuracy) for row in scores]
    rows = [
        Reading(
            _title(changed, shown),
            _in_words(changed),
            row,
            frozenset(method for method in methods if changed and not _of_method(changed, usual[method])),
            distance,
            distance == min(distances),
        )
        for changed, row, distance in zip(found, scores, distances, strict=True)
    ]
    titles = {variant.method: variant.method_title for variant in shown}
    order = sorted(rows, key=lambda row: (row.distance, bool(row.settings)))
    return Readings({name: titles[name] for name in methods}, accuracy, compared, tuple(order), same_collection)


def distance_to(scores: Mapping[str, float], printed: Mapping[str, float]) -> float:
    """Mean of |score - printed| over the methods of `scores`."""
    return float(np.mean([abs(score - printed[method]) for method, score in scores.items()]))


def _distinct(shown: Sequence[ShownVariant]) -> list[Changed]:
    """Every set of changed settings once, in the order of the variants; empty: as shipped.

    The part of a larger reading that applies to a method (FedMLP's features, of a reading of features and graph) is
    not a reading of its own.
    """
    holders: dict[str, list[ShownVariant]] = {}
    for variant in shown:
        holders.setdefault(_key(changed_settings(variant)), []).append(variant)
    changes = {key: changed_settings(held[0]) for key, held in holders.items()}

    def is_part(key: str) -> bool:
        return any(
            other != key and all(_key(_of_method(changes[other], variant.shipped)) == key for variant in holders[key])
            for other in changes
        )

    return [changed for key, changed in changes.items() if not changed or not is_part(key)]


def _of_method(changed: Changed, usual: Changed) -> dict[str, Any]:
    """The part of a reading that applies to a method with the settings `usual`."""
    return {key: value for key, value in changed.items() if key in usual}


def _key(changed: Changed) -> str:
    return canonical_json(dict(changed))


def _text(row: Reading) -> str:
    return short(row.distance)


def _title(changed: Changed, shown: Sequence[ShownVariant]) -> str:
    """The title of the variant with most settings: one with fewer may have a part of a larger reading."""
    if not changed:
        return SHIPPED
    named = max((variant for variant in shown if changed_settings(variant) == changed), key=lambda v: len(v.shipped))
    return named.label or _in_words(changed)


def _in_words(changed: Changed) -> str:
    return ", ".join(setting_in_words(key.rpartition(".")[2], value) for key, value in sorted(changed.items()))
