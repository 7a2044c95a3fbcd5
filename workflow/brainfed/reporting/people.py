"""Who is in a cohort, as the report counts them: every participant with its fate and its series' quality."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from brainfed.cohort.issues import reason_kind
from brainfed.runtime.artefacts import read_table


@dataclass(frozen=True)
class Attrition:
    """From the phenotype table to the subjects that are used.

    Attributes:
        listed: rows of the phenotype table.
        left_out: (why, how many), the most frequent first.
        included: subjects that are used.
    """

    listed: int
    left_out: tuple[tuple[str, int], ...]
    included: int


def read_cohort(participants: str | Path, included: str | Path, quality: Sequence[str | Path]) -> pd.DataFrame:
    """One row a participant, in ascending order of id.

    Returns:
        The columns of the participants, `included`, `twin_group`, `reason`, and those of the quality tables
        (missing without a series).
    """
    people = read_table(participants, ["subject", "site", "age", "sex", "diagnosis", "mean_fd", "has_series"])
    decided = read_table(included, ["subject", "included", "twin_group", "reason"])
    measured = pd.concat([read_table(path, ["subject", "timepoints", "tr"]) for path in quality], ignore_index=True)
    joined = people.merge(decided, on="subject", validate="one_to_one").merge(
        measured, on="subject", how="left", validate="one_to_one"
    )
    return joined.sort_values("subject", ignore_index=True)


def used(people: pd.DataFrame) -> pd.DataFrame:
    """The included subjects with the diagnosis as an integer."""
    return people[people["included"]].astype({"diagnosis": "int64"}).reset_index(drop=True)


def attrition(people: pd.DataFrame) -> Attrition:
    """Count who was left out, by kind of reason."""
    kinds = people.loc[~people["included"], "reason"].map(reason_kind).value_counts()
    left_out = sorted(((str(kind), int(count)) for kind, count in kinds.items()), key=lambda item: (-item[1], item[0]))
    return Attrition(len(people), tuple(left_out), int(people["included"].sum()))


def twin_groups(people: pd.DataFrame) -> list[list[str]]:
    """Ids of the included subjects whose series are identical, a list a group."""
    kept = people[people["included"]]
    return [sorted(group["subject"]) for _, group in kept.groupby("twin_group") if len(group) > 1]


def site_table(people: pd.DataFrame) -> pd.DataFrame:
    """Included subjects by site, the largest first: site, patients, controls."""
    kept = used(people)
    counts = pd.crosstab(kept["site"], kept["diagnosis"]).reindex(columns=[1, 0], fill_value=0)
    counts.columns = pd.Index(["patients", "controls"])
    order = (-counts.sum(axis=1)).sort_values(kind="stable").index
    return counts.loc[order].reset_index()
