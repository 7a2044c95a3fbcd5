"""Tables of the strongest features in the patterns of linear models."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.evaluation.patterns import Connection, Patterns, precision_at, stability

Places = Mapping[str, NDArray[np.float64]]
"""Region -> (3,) centre in mm, NaN without one; empty if no region has a place."""

AXES = ("x", "y", "z")
COLUMNS = (
    "variant", "class", "view", "rank", "from", "to", *(f"from_{axis}" for axis in AXES),
    *(f"to_{axis}" for axis in AXES), "mean", "sd", "z", "same_sign", "runs", "among_strongest", "k", "features",
)  # fmt: skip
PLANTED_COLUMNS = ("variant", "view", "k", "precision", "with_sign", "chance", "planted", "connections")

KEPT = 1000
"""Largest number of features of a pattern and view in the table."""
SHARE, FEWEST = 0.01, 20
"""The strongest features of a run: this share of a view, and their smallest number."""


def strongest_table(variant: str, patterns: Patterns, places: Places) -> pd.DataFrame:
    """The `KEPT` strongest features of every class and view of a variant.

    Returns:
        `COLUMNS`, in the order of classes, views and ranks. Class: empty for two classes. Rank: of `stability`, within
        the view. Coordinates in mm: NaN for a region without a place. among_strongest: share of all runs in which the
        feature is among the k strongest of the view's features.
    """
    found = [
        _of_view(patterns, model, view, places).assign(variant=variant, **{"class": name})
        for model, name in enumerate(patterns.classes or ("",))
        for view in _views(patterns)
    ]
    return pd.concat(found, ignore_index=True)[list(COLUMNS)]


def planted_table(variant: str, patterns: Patterns, planted: Mapping[Connection, int]) -> pd.DataFrame:
    """Precision of the k strongest connections of every view of connections against the planted ones.

    Args:
        variant: its name.
        patterns: of two classes.
        planted: connection -> sign.

    Returns:
        `PLANTED_COLUMNS`: those of `precision_at`, number of planted and of all connections; for k of 10, 20, 50, 100
        and the number of planted connections.
    """
    counts = sorted({10, 20, 50, 100, len(planted)})
    found = []
    for view in _views(patterns):
        table = stability(_restricted(patterns, view))
        connections = int((table["from"] != table["to"]).sum())
        if connections and planted:
            scored = precision_at(table, planted, counts)
            found.append(scored.assign(variant=variant, view=view, planted=len(planted), connections=connections))
    return pd.concat(found, ignore_index=True)[list(PLANTED_COLUMNS)] if found else no_rows(PLANTED_COLUMNS)


def no_rows(columns: Sequence[str]) -> pd.DataFrame:
    """An empty table."""
    return pd.DataFrame({name: [] for name in columns})


def _views(patterns: Patterns) -> list[str]:
    return list(dict.fromkeys(patterns.features[:, 0].tolist()))


def _restricted(patterns: Patterns, view: str) -> Patterns:
    own = patterns.features[:, 0] == view
    return replace(patterns, values=patterns.values[:, :, own], features=patterns.features[own])


def _of_view(patterns: Patterns, model: int, view: str, places: Places) -> pd.DataFrame:
    own = _restricted(patterns, view)
    width = len(own.features)
    k = min(max(FEWEST, round(SHARE * width)), width)
    table = stability(own, model).assign(among_strongest=_among(own.values[:, model], k), k=k, features=width)
    table = table.sort_values("rank").head(KEPT).reset_index(drop=True)
    nowhere = np.full(3, np.nan)
    for end in ("from", "to"):
        centres = np.array([places.get(region, nowhere) for region in table[end]]).reshape(-1, 3)
        table = table.assign(**{f"{end}_{axis}": centres[:, place] for place, axis in enumerate(AXES)})
    return table


def _among(values: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """(d,) share of the runs (runs, d) in which a feature is among the k of largest absolute value.

    A feature that a run does not select, or that does not change, is not among them.
    """
    size = np.nan_to_num(np.abs(values), nan=0.0)
    order = np.argsort(-size, axis=1, kind="stable")[:, :k]
    among = np.zeros(values.shape, dtype=np.bool_)
    np.put_along_axis(among, order, True, axis=1)
    return np.asarray((among & (size > 0)).mean(axis=0))
