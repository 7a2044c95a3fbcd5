"""Columns of the participants by which a job says what it reads: another cell of a column runs its readers again.

The module is light, as the Snakefile imports it.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from brainfed.cohort.phenotype.participant import Participant

FIELDS: Mapping[str, tuple[str, ...]] = {
    "site": ("site",),
    "age": ("age",),
    "sex": ("sex",),
    "diagnosis": ("diagnosis",),
    "labelled": ("labelled",),
    "mean_fd": ("mean_fd", "fd_source", "fd_problem"),
    "series": ("has_series", "absence"),
}
"""Name of a column -> fields of a table that has it. `labelled`: whether the diagnosis is known, not which it is."""
ALL = tuple(name for name in FIELDS if name != "labelled")
"""The columns of `participants.parquet`."""

Values = dict[str, list[Any]]
"""`subject` and columns -> the value of every subject; None where unknown."""


def in_order(columns: Iterable[str]) -> tuple[str, ...]:
    """These columns, each once, in the order of all.

    Raises:
        ValueError: there is no such column.
    """
    named = set(columns)
    if strangers := sorted(named - set(FIELDS)):
        raise ValueError(f"expected columns among {', '.join(FIELDS)}, found {strangers[0]!r}")
    return tuple(name for name in FIELDS if name in named)


def values_of(people: Iterable[tuple[str, Participant, str]], columns: Iterable[str]) -> Values:
    """The values of some columns.

    Args:
        people: subject, phenotype, and reason for the absence of a series (empty: it is there).
        columns: names, as in `FIELDS`.
    """
    chosen = in_order(columns)
    values: Values = {name: [] for name in ("subject", *chosen)}
    for subject, person, absence in people:
        values["subject"].append(subject)
        for name, value in _cells(person, absence, chosen):
            values[name].append(value)
    return values


def _cells(person: Participant, absence: str, columns: Iterable[str]) -> Iterator[tuple[str, Any]]:
    for name in columns:
        if name == "labelled":
            yield name, person.diagnosis is not None
        elif name == "series":
            yield name, absence
        else:
            value = getattr(person, name)
            yield name, None if isinstance(value, float) and math.isnan(value) else value
