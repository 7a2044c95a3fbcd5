"""The ways of subjects on the page: anchors that issues link to, and the scores of the methods in front."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brainfed.reporting.variants import ShownVariant


@dataclass(frozen=True)
class Ways:
    """The followed subjects of one cohort.

    Attributes:
        cohort: its name.
        mean: picture of the mean connectivity of the analysed subjects, a PNG in base64; empty without series.
        subjects: a dictionary each, as `follow_subjects` returns it.
    """

    cohort: str
    mean: str
    subjects: Sequence[Mapping[str, Any]]

    def anchor(self, subject: str) -> str:
        """The place of a subject on the page; empty for one that is not followed."""
        places = {str(one["subject"]): number for number, one in enumerate(self.subjects)}
        return f"subject-{self.cohort}-{places[subject]}" if subject in places else ""

    def scores(self, subject: Mapping[str, Any], shown: Sequence[ShownVariant]) -> list[tuple[ShownVariant, Any]]:
        """Rows of these variants, in their order."""
        rows = {row["variant"]: row for row in subject["scores"]}
        return [(variant, rows[variant.name]) for variant in shown if variant.name in rows]


def read_ways(cohort: str, path: str) -> Ways:
    """Read `tables/*-subjects.json`; nobody is followed where there is none."""
    if not path:
        return Ways(cohort, "", ())
    found = json.loads(Path(path).read_text(encoding="utf-8"))
    return Ways(cohort, found["mean"], found["subjects"])
