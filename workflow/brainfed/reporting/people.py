"""Participants of a cohort in the report: inclusion or reason for exclusion, and quality of the series."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from brainfed.cohort.classes import DIAGNOSIS_WORDS, ClassWords
from brainfed.cohort.quality.issues import reason_kind
from brainfed.cohort.quality.measures import MEASURES
from brainfed.runtime.artefacts import read_table


@dataclass(frozen=True)
class Attrition:
    """Exclusions from the phenotype table to the included subjects.

    Attributes:
        listed: rows of the phenotype table.
        left_out: (reason, number of subjects), the most frequent first.
        included: number of included subjects.
    """

    listed: int
    left_out: tuple[tuple[str, int], ...]
    included: int


def read_cohort(participants: str | Path, included: str | Path, measures: str | Path) -> pd.DataFrame:
    """One row a participant, in ascending order of id.

    Returns:
        The columns of the participants but their own `mean_fd`, `included`, `twin_group`, `reason`, and the
        measures of quality (NaN where not known).
    """
    people = read_table(participants, ["subject", "site", "age", "sex", "diagnosis", "has_series"])
    decided = read_table(included, ["subject", "included", "twin_group", "reason"])
    measured = read_table(measures, ["subject", *MEASURES])
    people = people.drop(columns="mean_fd", errors="ignore")
    joined = people.merge(decided, on="subject", validate="one_to_one").merge(
        measured, on="subject", validate="one_to_one"
    )
    return joined.sort_values("subject", ignore_index=True)


def used(people: pd.DataFrame) -> pd.DataFrame:
    """The included subjects with the diagnosis as an integer, -1 without one."""
    kept = people[people["included"]].reset_index(drop=True)
    return kept.assign(diagnosis=kept["diagnosis"].fillna(-1).astype("int64"))


def attrition(people: pd.DataFrame) -> Attrition:
    """Count the excluded subjects by kind of reason."""
    kinds = people.loc[~people["included"], "reason"].map(reason_kind).value_counts()
    left_out = sorted(((str(kind), int(count)) for kind, count in kinds.items()), key=lambda item: (-item[1], item[0]))
    return Attrition(len(people), tuple(left_out), int(people["included"].sum()))


def twin_groups(people: pd.DataFrame) -> list[list[str]]:
    """Ids of the included subjects with identical series, a list a group."""
    kept = people[people["included"]]
    return [sorted(group["subject"]) for _, group in kept.groupby("twin_group") if len(group) > 1]


def site_table(people: pd.DataFrame, words: ClassWords = DIAGNOSIS_WORDS) -> pd.DataFrame:
    """Included subjects by site, the largest first: site, a column a class, and unlabelled if there are any."""
    kept = used(people)
    columns = {code: words.short[code] for code in words.shown}
    columns |= {-1: "unlabelled"} if (kept["diagnosis"] < 0).any() else {}
    counts = pd.crosstab(kept["site"], kept["diagnosis"]).reindex(columns=list(columns), fill_value=0)
    counts.columns = pd.Index(columns.values())
    order = (-counts.sum(axis=1)).sort_values(kind="stable").index
    return counts.loc[order].reset_index()
