"""Table 1, and the ways of subjects on the page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.cohort import ClassWords
from brainfed.cohort.quality import SILENT, UNMEASURED, UNUSABLE, exclusion_kind, reason_kind
from brainfed.cohort.sources import EXCLUDED, Absence
from brainfed.reporting import NONE, ShownVariant, rounded
from brainfed.runtime import Float64, read_json

# Table 1: characteristics of the analysed subjects, of all and of each class, with standardised differences.
#
# A difference is in units of the pooled standard deviation (Austin 2009, Statistics in Medicine 28:3083, for means and
# for shares), which does not grow with the number of subjects as a p value does.

NOTABLE = 0.1
"""Standardised difference above which groups are called unbalanced (Austin 2009)."""


@dataclass(frozen=True)
class Characteristic:
    """One row.

    Attributes:
        cells: (value, number that is not known) of all subjects, then of each class in the order shown.
        difference: largest standardised difference between two classes, NaN where none can be computed.
    """

    title: str
    cells: tuple[tuple[str, int], ...]
    difference: float

    @property
    def notable(self) -> bool:
        """Whether the classes are unbalanced."""
        return bool(self.difference > NOTABLE)

    @property
    def shown(self) -> str:
        """The difference with two decimals."""
        return "\u221e" if np.isinf(self.difference) else rounded(self.difference, 2)


@dataclass(frozen=True)
class Measured:
    """One measure of every subject, NaN where not known; `share`: its values are 0 and 1, `digits`: of a mean."""

    title: str
    values: pd.Series
    share: bool = False
    digits: int = 1


def characteristics(kept: pd.DataFrame, words: ClassWords) -> list[Characteristic]:
    """Rows of the table; a measure that is known of nobody has none.

    Args:
        kept: the analysed subjects with site, age, sex, diagnosis (-1 without one), mean_fd, kept_seconds, tsnr and
            silent_regions.
    """
    groups = [np.ones(len(kept), dtype=bool), *((kept["diagnosis"] == code).to_numpy() for code in words.shown)]
    sizes = Characteristic("subjects", tuple((str(int(group.sum())), 0) for group in groups), np.nan)
    sites = Characteristic("sites", tuple((str(kept.loc[group, "site"].nunique()), 0) for group in groups), np.nan)
    numbers = kept[["age", "mean_fd", "kept_seconds", "tsnr", "silent_regions"]].astype("float64")
    silent = (numbers["silent_regions"] > 0).astype("float64").where(numbers["silent_regions"].notna())
    female = kept["sex"].map({"female": 1.0, "male": 0.0}).astype("float64")
    measures = [
        Measured("age (years)", numbers["age"]),
        *([Measured("female", female, share=True)] if words.target != "sex" else []),
        Measured("mean framewise displacement (mm)", numbers["mean_fd"], digits=3),
        Measured("scan length (min)", numbers["kept_seconds"] / 60, digits=2),
        Measured("temporal signal-to-noise ratio", numbers["tsnr"]),
        Measured("with regions without signal", silent, share=True),
    ]
    return [sizes, sites, *(_row(measured, groups) for measured in measures if measured.values.notna().any())]


def _row(measured: Measured, groups: list[NDArray[np.bool_]]) -> Characteristic:
    cells, known = [], []
    for group in groups:
        values = measured.values.to_numpy(dtype=np.float64)[group]
        known.append(values[np.isfinite(values)])
        cells.append((_summary(known[-1], measured), int(len(values) - len(known[-1]))))
    pairs = combinations(known[1:], 2)
    differences = [standardised_difference(first, second, share=measured.share) for first, second in pairs]
    known_ones = [value for value in differences if not np.isnan(value)]
    return Characteristic(measured.title, tuple(cells), max(known_ones, default=np.nan))


def _summary(values: Float64, measured: Measured) -> str:
    """`25.1 (6.2)`: mean and standard deviation; of a share `31 (53 %)`: number and share."""
    if not len(values):
        return NONE
    mean = float(values.mean())
    if measured.share:
        return f"{int(values.sum())} ({rounded(100 * mean, 0)}\u00a0%)"
    deviation = rounded(float(values.std(ddof=1)), measured.digits) if len(values) > 1 else NONE
    return f"{rounded(mean, measured.digits)} ({deviation})"


def standardised_difference(first: Float64, second: Float64, *, share: bool) -> float:
    """|difference of means| over the root of the mean variance; NaN for a group without values or with one.

    Groups that differ without any spread, as all women and all men, are infinitely far apart.
    """
    if not len(first) or not len(second):
        return float("nan")
    spreads = [_variance(values, share=share) for values in (first, second)]
    pooled = float(np.sqrt(sum(spreads) / 2))
    apart = abs(float(first.mean() - second.mean()))
    if pooled > 0 or np.isnan(pooled):
        return apart / pooled
    return float("inf") if apart > 0 else 0.0


def _variance(values: Float64, *, share: bool) -> float:
    if share:
        return float(values.mean() * (1 - values.mean()))
    return float(values.var(ddof=1)) if len(values) > 1 else float("nan")


# The ways of subjects on the page: anchors that issues link to, and the scores of the methods in front.


@dataclass(frozen=True)
class Ways:
    """The followed subjects of one cohort, as `follow_subjects` returns them; `mean` is a PNG in base64 or empty."""

    cohort: str
    mean: str
    subjects: Sequence[Mapping[str, Any]]

    def anchor(self, subject: str) -> str:
        """The place of a subject on the page; empty for one that is not followed."""
        places = {str(row["subject"]): number for number, row in enumerate(self.subjects)}
        return f"subject-{self.cohort}-{places[subject]}" if subject in places else ""

    def scores(self, subject: Mapping[str, Any], shown: Sequence[ShownVariant]) -> list[tuple[ShownVariant, Any]]:
        """Rows of these variants, in their order."""
        rows = {row["variant"]: row for row in subject["scores"]}
        return [(variant, rows[variant.name]) for variant in shown if variant.name in rows]


def read_ways(cohort: str, path: str) -> Ways:
    """Read `tables/*-subjects.json`; nobody is followed where there is none."""
    if not path:
        return Ways(cohort, "", ())
    ways = read_json(path)
    return Ways(cohort, ways["mean"], ways["subjects"])


# Flow of subjects from the phenotype table to the analysis (as in CONSORT and PRISMA charts).

ABSENT = frozenset(get_args(Absence)) - {"", EXCLUDED}
STEPS = ("not excluded", "with a series", "with a usable series", "with a label", "of sufficient quality")
"""Property of the subjects that pass each step, in the order of the listing and `cohort.quality._inclusion`."""
MEASURED = {
    "no FreeSurfer id": "with FreeSurfer measures",
    "stats folder absent": "with FreeSurfer measures",
    UNMEASURED: "with whole FreeSurfer measures",
}
"""The same property in a cohort of FreeSurfer measures."""


@dataclass(frozen=True)
class Count:
    """Number of subjects, in total and by class code; the others have no label."""

    subjects: int
    classes: Mapping[int, int]

    def described(self, words: ClassWords) -> str:
        """`7 patients, 5 controls`; empty if no subject has a label."""
        unknown = self.subjects - sum(self.classes.values())
        parts = [(self.classes.get(code, 0), code) for code in words.shown]
        shown = [f"{count} {(words.singular if count == 1 else words.many)[code]}" for count, code in parts if count]
        shown += [f"{unknown} without a {words.target}"] if unknown and shown else []
        return ", ".join(shown)


@dataclass(frozen=True)
class FlowStep:
    """The subjects that leave at one step, by reason, the most frequent first.

    `passed` is a property of the remaining ones, such as `with a series`.
    """

    passed: str
    reasons: tuple[tuple[str, Count], ...]
    remaining: Count


def flow_steps(people: pd.DataFrame) -> tuple[Count, tuple[FlowStep, ...]]:
    """The subjects of the phenotype table, and every step at which subjects leave.

    Args:
        people: included, reason, diagnosis (0 ... C - 1, null).

    Returns:
        All subjects, and the steps; the included subjects remain after the last step.
    """
    kinds = people["reason"].map(lambda reason: reason_kind(reason) if reason else "")
    kinds = kinds.where(~people["included"], "")
    step = kinds.map(lambda kind: _step(kind) if kind else len(STEPS))
    steps = []
    for place, passed in enumerate(STEPS):
        leaving = people[step == place]
        if len(leaving):
            counts = [(str(kind), _count(group)) for kind, group in leaving.groupby(kinds[step == place])]
            reasons = tuple(sorted(counts, key=lambda item: (-item[1].subjects, item[0])))
            title = MEASURED.get(reasons[0][0], passed)
            steps.append(FlowStep(title, reasons, _count(people[step > place])))
    return _count(people), tuple(steps)


def _step(kind: str) -> int:
    """Step of a kind of reason; a reason without relation to scan or quality concerns the label."""
    if kind == EXCLUDED:
        return 0
    if kind in ABSENT:
        return 1
    if kind in (UNUSABLE, UNMEASURED):
        return 2
    return 4 if kind == SILENT or exclusion_kind(kind) else 3


def _count(people: pd.DataFrame) -> Count:
    diagnosis = people["diagnosis"]
    codes = diagnosis[diagnosis.notna()].to_numpy(dtype=np.int64)
    return Count(len(people), dict(enumerate(np.bincount(codes[codes >= 0]).tolist())))
