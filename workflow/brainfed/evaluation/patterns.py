"""Stability over runs of the patterns of linear models, and their agreement with planted connections.

A pattern is the change of every feature along with a model's score (Haufe et al. 2014, NeuroImage 87); every run
(repeat and fold) has its own, from its training subjects. Runs share most of these subjects: z and the share of equal
signs describe the stability of the pattern and test nothing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.runtime.artefacts import read_arrays
from brainfed.runtime.errors import UserError

Connection = tuple[str, str]

COLUMNS = ("view", "from", "to", "mean", "sd", "z", "same_sign", "runs", "rank")


@dataclass(frozen=True)
class Patterns:
    """Patterns of one variant.

    Attributes:
        values: (runs, K, d) in the order of repeats and folds; NaN for a feature that the run did not select.
        features: (d, 3) of each feature its view (empty without views) and the regions that it connects; a tangent
            feature may connect a region with itself, and a measure has its name in place of both regions.
        classes: names of the K classes, each against the rest; empty for two classes, whose pattern is that of class 1.
    """

    values: NDArray[np.float64]
    features: NDArray[np.str_]
    classes: tuple[str, ...]


def read_patterns(files: Sequence[Path | str]) -> Patterns | None:
    """The patterns of all repeats of one variant; None for a method that leaves none.

    Raises:
        UserError: the files have different features.
    """
    read = [read_arrays(path, ["patterns"]) for path in files]
    if not read[0].arrays["patterns"].size:
        return None
    views, classes = read[0].metadata["views"], read[0].metadata["classes"]
    for path, file in zip(files, read, strict=True):
        if (file.metadata.get("views"), file.metadata.get("classes")) != (views, classes):
            raise UserError(f"{path}: expected patterns of the features of {files[0]}; delete both and run again.")
    features = [_features(view) for view in views]
    runs = [
        _whole(pattern, views, columns, [len(own) for own in features])
        for file in read
        for pattern, columns in zip(file.arrays["patterns"], file.metadata["columns"], strict=True)
    ]
    return Patterns(np.stack(runs), np.concatenate(features), tuple(classes))


def _features(view: Mapping[str, Any]) -> NDArray[np.str_]:
    """(d, 3) view and regions of all features of a view, also of those that no fold selects."""
    regions, settings = np.asarray(view["regions"], dtype=np.str_), view["settings"]
    if settings["kind"] != "connectivity":
        first = second = np.arange(len(regions))
    else:
        first, second = np.triu_indices(len(regions), 0 if settings["connectivity"] == "tangent" else 1)
    return np.column_stack([np.full(len(first), view["name"]), regions[first], regions[second]])


def _whole(
    pattern: NDArray[np.floating],
    views: Sequence[Mapping[str, Any]],
    columns: Sequence[Sequence[int] | None],
    widths: Sequence[int],
) -> NDArray[np.float64]:
    """Pattern (K, all features) of one run from that (K, d) of the features that it has, NaN elsewhere."""
    blocks = []
    for view, chosen, width in zip(views, columns, widths, strict=True):
        whole = np.full((len(pattern), width), np.nan)
        whole[:, slice(None) if chosen is None else list(chosen)] = pattern[:, view["start"] : view["stop"]]
        blocks.append(whole)
    return np.concatenate(blocks, axis=1)


def stability(patterns: Patterns, model: int = 0) -> pd.DataFrame:
    """How stable the pattern of every feature is over the runs that have it.

    Args:
        patterns: of one variant.
        model: position among the K models.

    Returns:
        `COLUMNS`, in the order of the features. Over the runs: mean; sd (NaN of one run); z = mean / sd (infinite
        without spread, 0 where both are 0); same_sign, the share of runs with the sign of the mean (0 for a mean of
        0); runs, their number. Rank 1 has the largest absolute mean, for which a run without the feature counts as 0;
        equal means rank in the order of the features.
    """
    values = patterns.values[:, model]
    held = np.isfinite(values)
    runs = held.sum(axis=0)
    known = np.where(held, values, 0.0)
    some = np.maximum(runs, 1)
    mean = known.sum(axis=0) / some
    squares = np.where(held, (values - mean) ** 2, 0.0).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        sd = np.where(runs > 1, np.sqrt(squares / (runs - 1)), np.nan)
        z = np.where((sd == 0) & (mean == 0), 0.0, mean / sd)
    same = ((np.sign(values) == np.sign(mean)) & held & (mean != 0)).sum(axis=0) / some
    rank = np.empty(len(mean), dtype=np.int64)
    rank[np.argsort(-np.abs(known.mean(axis=0)), kind="stable")] = np.arange(1, len(mean) + 1)
    columns = (*patterns.features.T, mean, sd, z, same, runs, rank)
    return pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))


def planted_connections(truth: Path | str, phenotype: str = "diagnosis") -> dict[Connection, int]:
    """Connections that a phenotype moves in a simulated cohort, regions in order of name -> sign of the change.

    Args:
        truth: `truth.json` of the simulation.
        phenotype: `diagnosis`, `age` or `sex`; the sign is that of patients, of higher age, of males.
    """
    found = json.loads(Path(truth).read_text(encoding="utf-8"))["connections"][phenotype]
    return {_unordered(first, second): int(sign) for first, second, sign in found}


def precision_at(table: pd.DataFrame, planted: Mapping[Connection, int], counts: Sequence[int]) -> pd.DataFrame:
    """Share of planted connections among the k first in rank.

    Args:
        table: of `stability`, one view of it if there are several; regions with themselves do not count.
        planted: connection -> sign.
        counts: values of k; those above the number of connections are left out.

    Returns:
        k; precision; with_sign, the share that is planted and has the planted sign; chance, the precision of a random
        order.

    Raises:
        ValueError: a planted connection is not in the table.
    """
    kept = table[table["from"] != table["to"]].sort_values("rank")
    found = [_unordered(first, second) for first, second in zip(kept["from"], kept["to"], strict=True)]
    absent = sorted(set(planted) - set(found))
    if absent:
        raise ValueError(f"the planted connection {absent[0]} is not among the {len(found)} connections")
    sign = np.array([planted.get(connection, 0) for connection in found])
    hits = (sign != 0).cumsum()
    right = ((sign != 0) & (sign == np.sign(kept["mean"].to_numpy()))).cumsum()
    k = np.array([count for count in counts if 0 < count <= len(found)], dtype=np.int64)
    chance = len(planted) / len(found)
    return pd.DataFrame({"k": k, "precision": hits[k - 1] / k, "with_sign": right[k - 1] / k, "chance": chance})


def _unordered(first: str, second: str) -> Connection:
    return (first, second) if first <= second else (second, first)
