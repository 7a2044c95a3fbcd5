"""Flow of subjects from the phenotype table to the analysis (as in CONSORT and PRISMA charts)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pandas as pd

from brainfed.cohort.classes import ClassWords
from brainfed.cohort.quality.inclusion import exclusion_kind
from brainfed.cohort.quality.issues import SILENT, UNMEASURED, UNUSABLE, reason_kind
from brainfed.cohort.sources.files import EXCLUDED, Absence

ABSENT = frozenset(get_args(Absence)) - {"", EXCLUDED}
STEPS = ("not excluded", "with a series", "with a usable series", "with a label", "of sufficient quality")
"""Property of the subjects that pass each step, in the order of the listing and `cohort.quality.inclusion`."""
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
        shown = [f"{number} {(words.one if number == 1 else words.many)[code]}" for number, code in parts if number]
        return ", ".join([*shown, *([f"{unknown} without a {words.target}"] if unknown and shown else [])])


@dataclass(frozen=True)
class FlowStep:
    """The subjects that leave at one step.

    Attributes:
        passed: property of the remaining subjects, such as `with a series`.
        reasons: (reason, number of subjects), the most frequent first.
        remaining: the remaining subjects.
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
