"""The results as tables of text: scores, and tests against the reference."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from brainfed.evaluation import INSTITUTION, METRICS, POOLED
from brainfed.reporting import (
    NONE,
    SIGNIFICANT,
    Interval,
    Scored,
    ShownVariant,
    by_family,
    p_short,
    rounded,
    short,
    signed,
)
from brainfed.reporting.text import METRIC, listed
from brainfed.runtime import flat_settings, read_arrays

RANKED = ("accuracy", "balanced_accuracy", "auc")
"""Metrics with the best value marked; a constant prediction maximises each of the others."""
SCOPE_TITLES = {INSTITUTION: "mean over institutions", POOLED: "all test subjects pooled"}


@dataclass(frozen=True)
class Cell:
    """One number of a table: its text, a sort key, and a second, smaller line; `printed`: it is one of the paper's."""

    text: str
    value: float = np.nan
    note: str = ""
    marked: bool = False
    printed: bool = False


def score_cell(score: Interval) -> Cell:
    """A mean with its interval below it."""
    return Cell(score.text, score.mean, str(score).removeprefix(score.text).strip())


@dataclass(frozen=True)
class Row:
    """One variant of a table."""

    variant: ShownVariant
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class ScoreTable:
    """One scope of the main table."""

    title: str
    rows: list[Row]


@dataclass(frozen=True)
class DifferenceTable:
    """One metric and scope of the tests, and the number of significant differences by each test."""

    title: str
    rows: list[Row]
    by_paper: int
    by_holm: int
    compared: int


def without_effect(variants: Sequence[ShownVariant], scored: Scored) -> list[str]:
    """Sentences on settings that changed nothing: ComBat without sites to compare, and variants of one method with one
    score in every run and by every metric.
    """
    idle = [variant for variant in variants if _harmonised_nothing(variant)]
    sentences = []
    if idle:
        sentences.append(
            f"ComBat changed nothing for {listed([variant.title for variant in idle])}: no institution has two sites "
            "with enough training subjects to compare."
        )
    alike: dict[tuple[str, bytes], list[ShownVariant]] = {}
    ordered = scored.runs.sort_values(["repeat", "fold", "scope", "metric"])
    values = {name: rows["value"].to_numpy().tobytes() for name, rows in ordered.groupby("variant", observed=True)}
    for variant in variants:
        if variant.name in values and variant not in idle:
            alike.setdefault((variant.method, values[variant.name]), []).append(variant)
    for first, *others in alike.values():
        own = flat_settings(first.settings, first.stages)
        for other in others:
            theirs = flat_settings(other.settings, other.stages)
            differing = sorted(key for key in own.keys() | theirs.keys() if own.get(key) != theirs.get(key))
            sentences.append(
                f"{other.title} has the scores of {first.title} in every run: {listed(differing)} changed "
                "nothing that a score shows."
            )
    return sentences


def _harmonised_nothing(variant: ShownVariant) -> bool:
    """Whether ComBat was asked for, and every file of its features says that no site was harmonised."""
    if "combat" not in str(variant.stages.get("features", {})):
        return False
    files = [read_arrays(path, []).metadata for path in variant.feature_files]
    parts = [part for file in files for part in (file, *file.get("views", ())) if "harmonised" in part]
    return bool(parts) and not any(any(part["harmonised"].values()) for part in parts)


def score_rows(summary: pd.DataFrame, variants: Sequence[ShownVariant], scope: str, scored: Scored) -> list[Row]:
    """Mean of every metric, below it the deviation over runs and, with repeats, over repeat means.

    Args:
        summary: variant, scope, metric, mean, sd, sd_of_repeats.
        scored: the runs; their intervals decide the number of decimals of a mean.
    """
    table = summary[summary["scope"] == scope]
    best = table.groupby("metric")["mean"].max().to_dict()
    spreads = [column for column in ("sd", "sd_of_repeats") if table[column].notna().any()]
    means = table.set_index(["variant", "metric"]).to_dict("index")
    rows = []
    for variant in by_family(variants):
        cells = []
        for metric in METRICS:
            row = means[variant.name, metric]
            mean = float(row["mean"])
            digits = scored.interval(variant.name, metric, scope).digits
            spread = " \u00b7 ".join(short(float(row[column]), digits) for column in spreads)
            cells.append(Cell(rounded(mean, digits), mean, spread, metric in RANKED and bool(mean == best[metric])))
        rows.append(Row(variant, tuple(cells)))
    return rows


def undefined_count(summary: pd.DataFrame) -> int:
    """Number of undefined AUCs of single institutions: a test fold had one class, or lacked one of several."""
    rows = summary[(summary["metric"] == "auc") & (summary["scope"] == INSTITUTION)]
    return int(rows["undefined"].max()) if len(rows) else 0


def difference_table(
    title: str, tests: pd.DataFrame, variants: Sequence[ShownVariant], metric: str, scope: str, runs: int
) -> DifferenceTable:
    """The differences of one metric and scope, and the number of significant ones by the paper's test and by Holm's.

    A row has the difference with its interval (none of few runs), the effect size, the paper's p, the corrected p and
    Holm's p.
    """
    table = tests[(tests["metric"] == metric) & (tests["scope"] == scope)]
    by_paper, by_holm = (int((table[name] < SIGNIFICANT).sum()) for name in ("p_paper", "p_holm"))
    by_variant = table.set_index("variant").to_dict("index")
    rows = []
    for variant in by_family([variant for variant in variants if variant.name in by_variant]):
        test = by_variant[variant.name]
        gap = Interval(float(test["difference"]), float(test["ci_low"]), float(test["ci_high"]), runs)
        difference = Cell(signed(gap.mean, gap.digits), gap.mean, gap.bounds if gap.bounded else "")
        effect = float(test["effect_size"])
        tested = (_p_cell(float(test[name])) for name in ("p_paper", "p_corrected", "p_holm"))
        rows.append(Row(variant, (difference, Cell(signed(effect, 2), effect), *tested)))
    return DifferenceTable(title, rows, by_paper, by_holm, len(table))


def _p_cell(p: float) -> Cell:
    return Cell(p_short(p), p, marked=p < SIGNIFICANT) if np.isfinite(p) else Cell(NONE)


# Every federated method with its counterparts: the same or the nearest model, trained locally and on pooled data.

SIDES = {"alone": "alone", "pooled": "pooled data"}


@dataclass(frozen=True)
class CounterpartRow:
    """One federated method and one counterpart.

    Attributes:
        score, counterpart_score: mean AUCs.
        side: `alone` or `pooled data`.
        counterpart: None if the experiment has none.
        auc, accuracy: federated minus counterpart.
        better: number of institutions with a higher mean AUC with federation, and the total.
        missing: reason for a missing counterpart, or the variant to add to the config.
    """

    variant: ShownVariant
    score: Interval
    side: str
    counterpart: ShownVariant | None = None
    counterpart_score: Interval | None = None
    auc: Interval | None = None
    accuracy: Interval | None = None
    better: tuple[int, int] = (0, 0)
    missing: str = ""

    @property
    def equal(self) -> bool:
        """Whether method and counterpart have one AUC in every run."""
        return self.auc is not None and self.auc.nothing


def counterpart_rows(variants: Sequence[ShownVariant], scored: Scored, gain: pd.DataFrame) -> list[CounterpartRow]:
    """Two rows a federated method: of all variants of the experiment, their runs and `scores.GAIN_COLUMNS`."""
    by_name = {variant.name: variant for variant in variants}
    rows = []
    for variant in by_family(variants):
        for side, title in SIDES.items():
            if side not in variant.counterparts:
                continue
            score, counterpart = scored.interval(variant.name, METRIC), variant.counterparts[side]
            if counterpart.name not in by_name:
                rows.append(CounterpartRow(variant, score, title, missing=counterpart.missing))
                continue
            chosen = (gain["variant"] == variant.name) & (gain["against"] == side) & (gain["metric"] == METRIC)
            means = gain[chosen]["mean"].dropna()
            rows.append(
                CounterpartRow(
                    variant,
                    score,
                    title,
                    by_name[counterpart.name],
                    scored.interval(counterpart.name, METRIC),
                    scored.difference(variant.name, counterpart.name, METRIC),
                    scored.difference(variant.name, counterpart.name, "accuracy"),
                    (int((means > 0).sum()), len(means)),
                )
            )
    return rows


def missing_counterparts(rows: Sequence[CounterpartRow]) -> list[str]:
    """A sentence for the methods that lack the same counterparts: which, and what to add."""
    lacking: dict[str, list[CounterpartRow]] = {}
    for row in rows:
        if row.counterpart is None:
            lacking.setdefault(row.variant.title, []).append(row)
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for title, own in lacking.items():
        alike.setdefault(tuple((row.side, row.missing) for row in own), []).append(title)
    return [_lacks(titles, dict(sides)) for sides, titles in alike.items()]


def _lacks(titles: Sequence[str], missing: dict[str, str]) -> str:
    """A sentence such as `FedGCN and FedNI have no counterpart alone or on pooled data here: add localgcn`."""
    sides = " or ".join("alone" if side == SIDES["alone"] else f"on {side}" for side in missing)
    verb = "have" if len(titles) > 1 else "has"
    added = [reason.removeprefix("add ") for reason in missing.values() if reason.startswith("add ")]
    reasons = [reason for reason in missing.values() if not reason.startswith("add ")]
    reasons += [f"add {listed(added)}"] if added else []
    return f"{listed(titles)} {verb} no counterpart {sides} here{': ' if reasons else ''}{'; '.join(reasons)}."


def counterpart_notes(variants: Sequence[ShownVariant]) -> list[str]:
    """Other differences between federated methods and their counterparts than the visible data, each sentence once."""
    notes: dict[str, list[str]] = {}
    for variant in by_family(variants):
        for side in SIDES:
            for sentence in variant.counterpart(side).differs:
                named = notes.setdefault(sentence, [])
                named += [variant.title] if variant.title not in named else []
    return [f"{', '.join(titles)}: {note}" for note, titles in notes.items()]
