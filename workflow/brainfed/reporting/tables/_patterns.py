"""The strongest features in the patterns of linear models, and how many of them a simulation planted."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainfed.cohort import ClassWords
from brainfed.evaluation import IMPORTANCE_COLUMNS as VIEW_COLUMNS
from brainfed.evaluation import PLANTED_COLUMNS, STRONGEST_COLUMNS
from brainfed.reporting import ShownVariant, rounded, short, signed

EACH = 10
"""Largest number of raised features, and of lowered ones."""
FEWEST_DIGITS = 3
"""Smallest number of decimals of a change; the largest change of a table has as many significant digits."""
MIDLINE = 3.0
"""Distance in mm from the middle of the brain below which a region is on neither side."""


@dataclass(frozen=True)
class ShownPattern:
    """One variant, class and view.

    Attributes:
        words: of the class whose score the pattern belongs to (1), and of all others (0).
        view: its name; empty without views.
        connections: whether the features are connections, or measures of one region.
        rows: `COLUMNS` of at most `EACH` raised features and as many lowered ones, raised first, the strongest first;
            of connections those between two regions.
        within: number of regions with themselves among as many strongest features as `rows` has.
        located: whether every shown region has a place.
    """

    variant: ShownVariant
    words: ClassWords
    view: str
    connections: bool
    rows: pd.DataFrame
    within: int
    located: bool

    @property
    def title(self) -> str:
        """The model, and the view and the class where there are several."""
        several = [self.view, self.words.short[1] if self.rows["class"].iloc[0] else ""]
        return ", ".join([self.variant.title, *filter(None, several)])

    @property
    def k(self) -> int:
        """Number of features of a run that count as strongest."""
        return int(self.rows["k"].iloc[0])

    @property
    def features(self) -> int:
        """Number of features of the view."""
        return int(self.rows["features"].iloc[0])

    @property
    def runs(self) -> int:
        """Number of runs of the feature with most of them."""
        return int(self.rows["runs"].max())

    @property
    def printed(self) -> list["PrintedFeature"]:
        """The rows as text."""
        largest = float(self.rows["mean"].abs().max())
        digits = max(FEWEST_DIGITS, FEWEST_DIGITS - 1 - int(np.floor(np.log10(largest))))
        return [_printed(row, digits, connections=self.connections) for row in self.rows.to_dict("records")]

    @property
    def itself(self) -> str:
        """A sentence on regions with themselves; empty if none is strong."""
        if not self.within:
            return ""
        what = "is a region with itself, its own variance" if self.within == 1 else "are regions with themselves"
        return f"Of the {len(self.rows)} strongest tangent features {self.within} {what}; these are in the TSV alone."


@dataclass(frozen=True)
class PrintedFeature:
    """One row of a table.

    Attributes:
        name: `Visual-01 (L) – Default-03 (R)`.
        raised: whether it rises with the score.
        mean, sd, z: of the pattern over runs.
        same_sign, among: percent of runs with the sign of the mean, and with the feature among the strongest.
        place: coordinates in mm; empty without.
    """

    name: str
    raised: bool
    mean: str
    sd: str
    z: str
    same_sign: str
    among: str
    place: str


def _printed(row: dict[Any, Any], digits: int, *, connections: bool) -> PrintedFeature:
    ends = ("from", "to") if connections else ("from",)
    places = [[float(row[f"{end}_{axis}"]) for axis in "xyz"] for end in ends]
    printed = [f"({', '.join(rounded(value, 0) for value in place)})" for place in places]
    return PrintedFeature(
        name=" \u2013 ".join(end_name(str(row[end]), place[0]) for end, place in zip(ends, places, strict=True)),
        raised=row["mean"] > 0,
        mean=signed(row["mean"], digits),
        sd=rounded(row["sd"], digits),
        z=rounded(row["z"], 1),
        same_sign=f"{rounded(100 * row['same_sign'], 0)} %",
        among=f"{rounded(100 * row['among_strongest'], 0)} %",
        place=" \u2013 ".join(printed) if np.isfinite(places).all() else "",
    )


def read_strongest(path: str | Path) -> pd.DataFrame:
    """`COLUMNS` of the strongest features; names stay text."""
    return _read(path, STRONGEST_COLUMNS, ("variant", "class", "view", "from", "to"))


def planted_sentences(path: str | Path, variants: Sequence[ShownVariant], words: ClassWords) -> list[str]:
    """Planted connections among the strongest, one sentence a variant and view; none without a simulation."""
    table = _read(path, PLANTED_COLUMNS, ("variant", "view"))
    said = [
        _planted(variant, str(view), own)
        for variant in variants
        for view, own in table[table["variant"] == variant.name].groupby("view", sort=False)
    ]
    if not said:
        return []
    planted, connections = int(table["planted"].iloc[0]), int(table["connections"].iloc[0])
    chance = short(float(table["chance"].iloc[0]), 2)
    first = (
        f"The simulation changes {planted} of {connections:,} connections with the {words.target}, so a random order "
        f"of connections has a precision of {chance}."
    )
    return [first, *said]


@dataclass(frozen=True)
class ViewRow:
    """Importance of one view of a variant, as text."""

    variant: ShownVariant
    view: str
    auc: str
    permuted: str
    loss: str
    sd: str


def view_rows(path: str | Path, variants: Sequence[ShownVariant]) -> list[ViewRow]:
    """Loss of AUC of every view; empty without variants of several views."""
    table = _read(path, VIEW_COLUMNS, ("variant", "view"))
    return [
        ViewRow(
            variant, row["view"], rounded(row["auc"]), rounded(row["permuted"]), signed(row["loss"]), rounded(row["sd"])
        )
        for variant in variants
        for row in table[table["variant"] == variant.name].to_dict("records")
    ]


def _planted(variant: ShownVariant, view: str, own: pd.DataFrame) -> str:
    """The sentence on as many connections as the figure shows, and on as many as are planted."""
    planted = int(own["planted"].iloc[0])
    parts = [
        f"{round(row['precision'] * row['k'])} of the {int(row['k'])} strongest connections are planted (precision "
        f"{short(row['precision'], 2)}), {round(row['with_sign'] * row['k'])} of them with the planted sign"
        for row in own.to_dict("records")
        if row["k"] in (2 * EACH, planted)
    ]
    return f"{variant.title}{f', {view}' if view else ''}: {'; '.join(parts)}."


def _read(path: str | Path, columns: Sequence[str], text: Sequence[str]) -> pd.DataFrame:
    """A table whose columns `text` are never read as numbers or as missing."""
    numbers = [name for name in columns if name not in text]
    return pd.read_csv(
        path, sep="\t", usecols=list(columns), dtype=dict.fromkeys(text, str) | dict.fromkeys(numbers, float),
        keep_default_na=False, na_values={name: [""] for name in numbers},
    )  # fmt: skip


def shown_patterns(table: pd.DataFrame, variants: Sequence[ShownVariant], words: ClassWords) -> list[ShownPattern]:
    """The patterns in the table of the strongest features, in the order of the variants, classes and views."""
    # The classes of the table, in order; one empty name of two classes.
    names = dict.fromkeys(table["class"].tolist())
    named = {name: contrast for name, (_, contrast) in zip(names, words.contrasts, strict=False)}
    return [
        shown
        for variant in variants
        for (name, view), own in table[table["variant"] == variant.name].groupby(["class", "view"], sort=False)
        if (shown := _shown(variant, named[str(name)], str(view), own)) is not None
    ]


def _shown(variant: ShownVariant, words: ClassWords, view: str, own: pd.DataFrame) -> ShownPattern | None:
    connections = bool((own["from"] != own["to"]).any())
    ranked = own[own["mean"] != 0].sort_values("rank")
    kept = ranked[ranked["from"] != ranked["to"]] if connections else ranked
    rows = pd.concat([kept[kept["mean"] > 0].head(EACH), kept[kept["mean"] < 0].head(EACH)], ignore_index=True)
    if rows.empty:
        return None
    first = ranked.head(len(rows))
    within = int((first["from"] == first["to"]).sum()) if connections else 0
    ends = [f"{end}_{axis}" for end in ("from", "to") for axis in "xyz"]
    located = connections and bool(np.isfinite(rows[ends].to_numpy(dtype=np.float64)).all())
    return ShownPattern(variant, words, view, connections, rows, within, located)


def end_name(region: str, x: float, longest: int = 200) -> str:
    """`Precuneus (L)` for a region x mm to the right of the middle; a name above `longest` characters loses its middle.

    `M` stands for near the middle; a region without a place (NaN) has no letter.
    """
    if len(region) > longest:
        kept = (longest - 1) // 2
        region = f"{region[:kept]}\u2026{region[-kept:]}"
    if not np.isfinite(x):
        return region
    return f"{region} ({'M' if abs(x) < MIDLINE else 'L' if x < 0 else 'R'})"
