"""The page on a study between sites as tables of text: scores of all sites together, and scores by site."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from brainfed.cohort.classes import ClassWords
from brainfed.evaluation.site_counts import MORE_CLASSES, TWO_CLASSES, at_site
from brainfed.reporting.intervals import Interval
from brainfed.reporting.outcome.results import AUC, ExperimentResult, VariantResult
from brainfed.reporting.rounding import NONE, rounded, signed
from brainfed.reporting.tables.scores import Cell, Row


@dataclass(frozen=True)
class Head:
    """A column's head.

    Attributes:
        title: its words.
        note: a second, smaller line.
    """

    title: str
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table of the page.

    Attributes:
        heads: of the columns after the first.
        rows: a variant each.
    """

    heads: Sequence[Head]
    rows: Sequence[Row]


def score_table(result: ExperimentResult, words: ClassWords) -> Table:
    """Measures of all sites together, below each its interval over runs."""
    titles = {
        "accuracy": Head("accuracy", "all sites together"),
        "recall": Head("sensitivity", f"of {words.many[1]}"),
        "specificity": Head("specificity", f"of {words.many[0]}"),
    }
    metrics = (TWO_CLASSES if words.count == 2 else MORE_CLASSES)[1:]
    heads = [
        Head("balanced accuracy", "all sites together"),
        Head("balanced accuracy", "mean of the sites"),
        *(titles[metric] for metric in metrics),
        Head("AUC", "mean of the sites"),
    ]
    best = max((one.score.mean for one in result.variants if np.isfinite(one.score.mean)), default=np.nan)
    rows = []
    for one in result.variants:
        first = _cell(one.score, marked=one.score.mean == best) if one.has_rows else Cell(NONE, note="no row")
        cells = [first, _across(one.across), *(_cell(one.values[metric]) for metric in (*metrics, AUC))]
        rows.append(Row(one.variant, tuple(cells)))
    return Table(heads, rows)


def site_table(result: ExperimentResult, words: ClassWords) -> Table:
    """Balanced accuracy at each site and of all together, below each the difference from the reference."""
    heads = [Head(site.name, by_class(site.people, words)) for site in result.sites]
    rows = [Row(one.variant, tuple(_site_cells(result, one, words))) for one in result.variants]
    return Table([Head("all sites together"), *heads], rows)


def by_class(people: Mapping[int, int], words: ClassWords) -> str:
    """`20 patients, 25 controls`; `20 CN, 25 MCI, 9 AD`."""
    names = words.many if words.count == 2 else words.short
    return ", ".join(f"{people[code]:,} {names[code]}" for code in words.shown)


def undefined(result: ExperimentResult) -> list[str]:
    """Sites without a balanced accuracy, though they sent rows."""
    return [
        site.name
        for site in result.sites
        if site.rows and not any(np.isfinite(one.at_sites[site.name]) for one in result.variants)
    ]


def _site_cells(result: ExperimentResult, one: VariantResult, words: ClassWords) -> list[Cell]:
    reference = result.reference
    cells = []
    for site in result.sites:
        value = one.at_sites[site.name]
        if not np.isfinite(value):
            cells.append(Cell(NONE, note=_why(one, site.name, site.people, words)))
            continue
        difference = value - reference.at_sites[site.name]
        shown = one is not reference and np.isfinite(difference)
        cells.append(Cell(rounded(value, 2), value, signed(difference, 2) if shown else ""))
    note = "" if one is reference or not reference.has_rows else _difference(result.difference(one, reference))
    return [Cell(rounded(one.score.mean, 2), one.score.mean, note), *cells]


def _why(one: VariantResult, site: str, people: Mapping[int, int], words: ClassWords) -> str:
    """Reason for a dash."""
    if not at_site(one.folds, site):
        return "no row"
    absent = [(words.many if words.count == 2 else words.short)[code] for code in words.shown if not people[code]]
    return f"no {' or '.join(absent)}" if absent else "a class is missing"


def _difference(found: Interval) -> str:
    return found.as_difference() if np.isfinite(found.mean) else ""


def _cell(found: Interval, *, marked: bool = False) -> Cell:
    if not np.isfinite(found.mean):
        return Cell(NONE)
    bounds = f"{rounded(found.low, found.digits)} to {rounded(found.high, found.digits)}"
    return Cell(found.text, found.mean, bounds if found.known and not found.few else "", marked)


def _across(found: Interval) -> Cell:
    """Of sites, few as they are: its width is the message."""
    if not np.isfinite(found.mean):
        return Cell(NONE)
    bounds = f"{rounded(found.low, 2)} to {rounded(found.high, 2)}" if found.known else ""
    return Cell(rounded(found.mean, 2), found.mean, bounds)
