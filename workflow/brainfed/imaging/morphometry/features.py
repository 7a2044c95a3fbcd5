"""FreeSurfer measures of a cohort: join tables by subject, convert cells to numbers, normalise volumes by head size."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.cohort.phenotype.table import ALWAYS_MISSING
from brainfed.cohort.quality.issues import MEASURES
from brainfed.cohort.settings.freesurfer import FreeSurferSettings
from brainfed.imaging.morphometry.freesurfer_table import TextTable
from brainfed.imaging.morphometry.measure_names import INTRACRANIAL, is_feature, measure_of
from brainfed.runtime.errors import UserError

HEAD = 1_500_000.0
"""Intracranial volume in mm³ to which `normalise: ratio` scales volumes: a constant, not fitted."""

LARGEST = float(np.finfo(np.float32).max)
"""Largest feature: features are stored as float32."""

Source = tuple[TextTable, int]
"""A table, and the position of a column in its rows."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Morphometry:
    """Measures of the cohort.

    Attributes:
        values: one row a subject with whole measures, ascending; one column a measure; float64, finite; mm, mm², mm³.
        problems: subject -> cause of absent measures.
    """

    values: pd.DataFrame
    problems: dict[str, str]


def read_morphometry(
    tables: Sequence[TextTable],
    identities: Mapping[str, str],
    settings: FreeSurferSettings,
    missing: Sequence[str] = (),
) -> Morphometry:
    """Join tables by FreeSurfer's id and convert their cells to numbers.

    Columns that are empty for all subjects are left out. A column of several tables is read once if all agree:
    aparcstats2table writes eTIV and BrainSegVolNotVent into each.

    Args:
        tables: in the order of their columns.
        identities: subject -> FreeSurfer's id.
        settings: selection of columns, and normalisation of volumes.
        missing: codes of a missing value.

    Raises:
        UserError: no column is left, two tables disagree on one, no subject is in a table, or two subjects share an id.
    """
    _refuse_shared(identities)
    joined: dict[str, Source] = {}
    for table in tables:
        _refuse_strangers(table, identities)
        for place, column in enumerate(table.columns):
            if column in joined:
                _refuse_difference(joined[column], (table, place), column)
            elif is_feature(column, settings) or (settings.normalise == "ratio" and column in INTRACRANIAL):
                joined[column] = (table, place)
    absent_codes = ALWAYS_MISSING | set(missing)
    columns = _measured_columns(joined, set(identities.values()), absent_codes)
    logger.info("%d columns of %d tables", len(columns), len(tables))
    if not any(is_feature(column, settings) for column in columns):
        raise UserError(
            f"freesurfer: expected measures among the columns of {len(tables)} tables, found none that `columns`, "
            "`leave_out` and `measures` keep; fix them."
        )
    rows: dict[str, NDArray[np.float64]] = {}
    problems: dict[str, str] = {}
    for subject in sorted(identities):
        try:
            rows[subject] = _numbers(subject, identities[subject], columns, absent_codes)
        except UserError as error:
            problems[subject] = str(error)
    values = pd.DataFrame.from_dict(rows, orient="index", columns=list(columns), dtype=np.float64)
    if settings.normalise == "ratio":
        values, small = _for_one_head(values)
        problems |= small
    return Morphometry(values[[column for column in columns if is_feature(column, settings)]], problems)


def _refuse_shared(identities: Mapping[str, str]) -> None:
    owner: dict[str, str] = {}
    for subject, identity in identities.items():
        if identity in owner:
            raise UserError(
                f"freesurfer.id: expected an id of its own for every subject, found {identity!r} for {owner[identity]} "
                f"and {subject}; fix `freesurfer.id` or the phenotype table."
            )
        owner[identity] = subject


def _refuse_strangers(table: TextTable, identities: Mapping[str, str]) -> None:
    if not any(identity in table.rows for identity in identities.values()):
        raise UserError(
            f"{table.file}: expected rows of the cohort's subjects ({next(iter(identities.values()), 'none')!r} ...), "
            f"found none among {len(table.rows)} ({next(iter(table.rows), 'no row')!r} ...); fix `freesurfer.id` or "
            "`columns.file`."
        )


def _refuse_difference(left_source: Source, right_source: Source, column: str) -> None:
    """Refuse two tables with different values of a subject in one column."""
    (first, one), (second, other) = left_source, right_source
    for identity in first.rows.keys() & second.rows.keys():
        left, right = first.rows[identity][one], second.rows[identity][other]
        if left != right and not _equal(left, right):
            raise UserError(
                f"{second.file}: expected in column {column!r} what {first.file} has there, found {right} for "
                f"{identity} instead of {left}; remove one of the tables, or rename the column."
            )


def _equal(left: str, right: str) -> bool:
    try:
        return float(left) == float(right)
    except ValueError:
        return False


def _measured_columns(joined: Mapping[str, Source], identities: set[str], absent: frozenset[str]) -> dict[str, Source]:
    """Columns in which any subject has a value."""
    kept: dict[str, Source] = {}
    for column, (table, place) in joined.items():
        if any(cells[place] not in absent for identity, cells in table.rows.items() if identity in identities):
            kept[column] = (table, place)
        else:
            logger.info("%s: column %s is empty, left out", table.file, column)
    return kept


def _numbers(subject: str, identity: str, columns: Mapping[str, Source], absent: frozenset[str]) -> NDArray[np.float64]:
    values = np.empty(len(columns))
    for number, (column, (table, place)) in enumerate(columns.items()):
        where = f"Subject {subject}: {MEASURES}, found"
        if identity not in table.rows:
            raise UserError(
                f"{where} no row {identity!r} in {table.file}; add it, or drop the subject (on_invalid: drop; "
                "a subject with scans stays without these measures)."
            )
        text = table.rows[identity][place]
        cell = f"in {table.place(identity)}, column {column!r}"
        if text in absent:
            raise UserError(
                f"{where} an empty cell {cell}; fill it in, or name the column under `freesurfer.leave_out`."
            )
        try:
            values[number] = float(text)
        except ValueError:
            comma = text.count(",") == 1 and text.replace(",", "").lstrip("-").isdigit()
            remedy = "it has a decimal comma, write a point" if comma else "fix it or list it in `missing`"
            raise UserError(f"{where} {text!r} {cell}; {remedy}.") from None
        negative = values[number] < 0 and measure_of(column) != "other"
        if negative or not abs(values[number]) <= LARGEST:
            raise UserError(f"{where} {text!r} {cell}; fix it or list it in `missing`.")
    return values


def _for_one_head(values: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, str]]:
    """Scale volumes, except the intracranial one, to a head of `HEAD`; subject -> problem without a head size."""
    named = [column for column in INTRACRANIAL if column in values.columns]
    if not named:
        raise UserError(
            "freesurfer.normalise: expected the estimated intracranial volume among the columns "
            f"({', '.join(INTRACRANIAL)}), found none; add the table of asegstats2table, or set normalise: none."
        )
    head = values[named[0]]
    problems = {
        str(subject): f"Subject {subject}: {MEASURES}, found an intracranial volume of {volume:g} mm³ in column "
        f"{named[0]!r}; fix it, or drop the subject."
        for subject, volume in head[head <= 0].items()
    }
    kept = values[head > 0]
    volumes = [column for column in values.columns if measure_of(column) == "volume" and column not in INTRACRANIAL]
    scaled = kept[volumes].mul(HEAD / kept[named[0]], axis=0)
    return kept.assign(**{str(column): scaled[column] for column in volumes}), problems
