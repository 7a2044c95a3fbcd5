"""FreeSurfer's measures of a cohort: joined, converted, normalised, written."""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from brainfed.cohort.phenotype import ALWAYS_MISSING, plain_number
from brainfed.cohort.quality import EXPECTED, coverage_without_scan, quality_without_scan
from brainfed.cohort.settings import CohortSettings, FreeSurferSettings
from brainfed.cohort.sources import spelling, stats_folder, stats_names
from brainfed.imaging.morphometry._tables import (
    INTRACRANIAL,
    RENAMED,
    Kind,
    TextTable,
    current_name,
    is_chosen,
    is_feature,
    measure_of,
    read_freesurfer_table,
    read_stats,
)
from brainfed.imaging.series import ShardFiles
from brainfed.runtime import Float64, UserError, write_arrays, write_table

# FreeSurfer measures of a cohort: join tables by subject, convert cells to numbers, normalise volumes by head size.

HEAD = 1_500_000.0
"""Intracranial volume in mm³ to which `normalise: ratio` scales volumes: a constant, not fitted."""

LARGEST = float(np.finfo(np.float32).max)
"""Largest feature: features are stored as float32."""

Source = tuple[TextTable, int]
"""A table, and the position of a column in its rows."""


@dataclass(frozen=True)
class Column:
    """A measure, and the tables that have it: one, or several of which each has some subjects."""

    kind: Kind
    sources: tuple[Source, ...]
    feature: bool


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Morphometry:
    """Measures of the cohort.

    Attributes:
        values: one row a subject with whole measures, ascending; one column a measure; float64, finite; mm, mm², mm³.
        problems: subject -> cause of absent measures.
        remarks: sentences on the tables together.
    """

    values: pd.DataFrame
    problems: dict[str, str]
    remarks: tuple[str, ...] = ()


def read_morphometry(
    tables: Sequence[TextTable],
    identities: Mapping[str, str],
    settings: FreeSurferSettings,
    missing: Sequence[str] = (),
) -> Morphometry:
    """Join tables by FreeSurfer's id and convert their cells to numbers.

    Columns that are empty for all subjects are left out. A column may be in several tables: each has other subjects, as
    of several hospitals, or all agree, as aparcstats2table writes eTIV and BrainSegVolNotVent into each. The thalamus,
    which FreeSurfer 6 and 7 name differently, is one column.

    Args:
        tables: in the order of their columns.
        identities: subject -> FreeSurfer's id.

    Raises:
        UserError: no column is left, a column chosen by a pattern is of no known kind, two tables disagree on one, no
            subject is in a table, or two subjects share an id.
    """
    _refuse_shared(identities)
    for table in tables:
        _refuse_strangers(table, identities)
        _refuse_unknown(table, settings)
    absent_codes = ALWAYS_MISSING | set(missing)
    joined = _joined(tables, settings, absent_codes)
    columns = _measured_columns(joined, set(identities.values()), absent_codes)
    logger.info("%d columns of %d tables", len(columns), len(tables))
    if not any(column.feature for column in columns.values()):
        raise UserError(
            f"freesurfer: expected measures among the columns of {len(tables)} tables, found none that `columns`, "
            "`leave_out` and `measures` keep; fix them."
        )
    rows: dict[str, Float64] = {}
    problems: dict[str, str] = {}
    for subject in sorted(identities):
        try:
            rows[subject] = _numbers(subject, identities[subject], columns, tables, absent_codes)
        except UserError as error:
            problems[subject] = str(error)
    values = pd.DataFrame.from_dict(rows, orient="index", columns=list(columns), dtype=np.float64)
    if settings.normalise == "ratio":
        values, small = _for_one_head(values, columns)
        problems |= small
    kept = [name for name, column in columns.items() if column.feature]
    return Morphometry(values[kept], problems, _versions(tables))


def _joined(tables: Sequence[TextTable], settings: FreeSurferSettings, absent: frozenset[str]) -> dict[str, Column]:
    """Columns that are features or head sizes, in the order of the tables."""
    names = {column for table in tables for column in table.columns}
    joined: dict[str, Column] = {}
    for table in tables:
        for place, written in enumerate(table.columns):
            name = current_name(written, names)
            kind = measure_of(name)
            kind = table.kind if kind == "unknown" else kind
            either = any if settings.columns else all
            feature = either(is_feature(spelling, settings, table.kind) for spelling in (written, name))
            if not (feature or name in joined or (settings.normalise == "ratio" and name in INTRACRANIAL)):
                continue
            known = joined.get(name, Column(kind, (), feature=False))
            for source in known.sources:
                _refuse_difference(source, (table, place), name, absent)
            joined[name] = Column(known.kind, (*known.sources, (table, place)), known.feature or feature)
    return joined


def _versions(tables: Sequence[TextTable]) -> tuple[str, ...]:
    """A remark on structures that have the names of two versions of FreeSurfer."""
    names = {column for table in tables for column in table.columns}
    both = [former for former, current in RENAMED.items() if former in names and current in names]
    if not both:
        return ()
    sentence = (
        f"freesurfer: {both[0]} of FreeSurfer 6 and {RENAMED[both[0]]} of FreeSurfer 7 are read as one structure; two "
        "versions of FreeSurfer measure differently, so check that patients and controls were processed alike."
    )
    logger.info("%s", sentence)
    return (sentence,)


def _refuse_shared(identities: Mapping[str, str]) -> None:
    owner: dict[str, str] = {}
    for subject, identity in identities.items():
        if identity in owner:
            raise UserError(
                f"freesurfer.id: expected an id of its own for every subject, found {identity!r} for {owner[identity]} "
                f"and {subject}; fix `freesurfer.id` or the phenotype table."
            )
        owner[identity] = subject


def _refuse_unknown(table: TextTable, settings: FreeSurferSettings) -> None:
    """Refuse columns of no known kind that a pattern, or no setting at all, chooses: none is dropped in silence."""
    unknown = [
        column
        for column in table.columns
        if table.kind == "unknown" == measure_of(column)
        and column not in settings.columns
        and is_chosen(column, settings)
    ]
    if unknown:
        raise UserError(
            f"{table.file}: expected volumes, thicknesses or areas among the columns to read, found {unknown[0]!r} "
            f"({len(unknown)} such columns), whose name does not tell what it is; name it in full under "
            "`freesurfer.columns` to read it, or under `freesurfer.leave_out`."
        )


def _refuse_strangers(table: TextTable, identities: Mapping[str, str]) -> None:
    if set(identities.values()) & {column.rstrip("/") for column in table.columns}:
        raise UserError(
            f"{table.file}: expected a row a subject, found a column a subject; the table is transposed: turn it, or "
            "write it again without --transpose."
        )
    if not any(identity in table.rows for identity in identities.values()):
        raise UserError(
            f"{table.file}: expected rows of the cohort's subjects ({next(iter(identities.values()), 'none')!r} ...), "
            f"found none among {len(table.rows)} ({next(iter(table.rows), 'no row')!r} ...); fix `freesurfer.id` or "
            "`columns.file`."
        )


def _refuse_difference(left_source: Source, right_source: Source, column: str, absent: frozenset[str]) -> None:
    """Refuse two tables with different values of a subject in one column."""
    (first, place), (second, other) = left_source, right_source
    for identity in first.rows.keys() & second.rows.keys():
        left, right = first.rows[identity][place], second.rows[identity][other]
        if left != right and not {left, right} & absent and not _equal(left, right):
            raise UserError(
                f"{second.file}: expected in column {column!r} what {first.file} has there, found {right} for "
                f"{identity} instead of {left}; remove one of the tables, or rename the column."
            )


def _equal(left: str, right: str) -> bool:
    try:
        return plain_number(left) == plain_number(right)
    except ValueError:
        return False


def _measured_columns(joined: Mapping[str, Column], identities: set[str], absent: frozenset[str]) -> dict[str, Column]:
    """Columns in which any subject has a value."""
    kept: dict[str, Column] = {}
    for name, column in joined.items():
        cells = (
            cells[place]
            for table, place in column.sources
            for identity, cells in table.rows.items()
            if identity in identities
        )
        if any(cell not in absent for cell in cells):
            kept[name] = column
        else:
            logger.info("%s: column %s is empty, left out", column.sources[0][0].file, name)
    return kept


def _numbers(
    subject: str, identity: str, columns: Mapping[str, Column], tables: Sequence[TextTable], absent: frozenset[str]
) -> Float64:
    values = np.empty(len(columns))
    for number, (name, column) in enumerate(columns.items()):
        where = f"Subject {subject}: {EXPECTED}, found"
        sources = [source for source in column.sources if identity in source[0].rows]
        if not sources:
            raise UserError(_without_row(where, identity, name, column, tables))
        table, place = next((pair for pair in sources if pair[0].rows[identity][pair[1]] not in absent), sources[0])
        text = table.rows[identity][place]
        cell = f"in {table.place(identity)}, column {name!r}"
        if text in absent:
            raise UserError(
                f"{where} an empty cell {cell}; fill it in, or name the column under `freesurfer.leave_out`."
                if table.places
                else f"{where} no {name!r} in {table.place(identity)}, which other subjects have; another version of "
                "FreeSurfer may have measured them: run one version, or name it under `freesurfer.leave_out`."
            )
        try:
            values[number] = plain_number(text)
        except ValueError:
            comma = text.count(",") == 1 and text.replace(",", "").lstrip("-").isdigit()
            remedy = "it has a decimal comma, write a point" if comma else "fix it or list it in `missing`"
            raise UserError(f"{where} {text!r} {cell}; {remedy}.") from None
        negative = values[number] < 0 and column.kind in ("volume", "thickness", "area")
        if negative or not abs(values[number]) <= LARGEST:
            raise UserError(f"{where} {text!r} {cell}; fix it or list it in `missing`.")
    return values


def _without_row(where: str, identity: str, name: str, column: Column, tables: Sequence[TextTable]) -> str:
    """Sentence on a subject without a row in the tables that have a column."""
    first = column.sources[0][0]
    for table in tables:
        if identity in table.rows and 2 * len({*table.columns} & {*first.columns}) > len(first.columns):
            return (
                f"{where} no column {name!r} in {table.file}, which {first.file} has; another version of FreeSurfer "
                "may have written it: run one version, or name the column under `freesurfer.leave_out`."
            )
    files = " or ".join(table.file for table, _ in column.sources)
    alike = [row for table, _ in column.sources for row in table.rows if spelling(row) == spelling(identity)]
    if alike:
        return (
            f"{where} no row {identity!r} in {files}; did you mean {alike[0]!r}? Change `freesurfer.id`, or the name "
            "of the site under `codes.site`."
        )
    return (
        f"{where} no row {identity!r} in {files}; add it, or drop the subject (on_invalid: drop; "
        "a subject with scans stays without these measures)."
    )


def _for_one_head(values: pd.DataFrame, columns: Mapping[str, Column]) -> tuple[pd.DataFrame, dict[str, str]]:
    """Scale volumes, except the intracranial one, to a head of `HEAD`; subject -> problem without a head size."""
    named = [column for column in INTRACRANIAL if column in values.columns]
    if not named:
        raise UserError(
            "freesurfer.normalise: expected the estimated intracranial volume among the columns "
            f"({', '.join(INTRACRANIAL)}), found none; add the table of asegstats2table, or set normalise: none."
        )
    head = values[named[0]]
    problems = {
        str(subject): f"Subject {subject}: {EXPECTED}, found an intracranial volume of {volume:g} mm³ in column "
        f"{named[0]!r}; fix it, or drop the subject."
        for subject, volume in head[head <= 0].items()
    }
    kept = values[head > 0]
    volumes = [name for name, column in columns.items() if column.kind == "volume" and name not in INTRACRANIAL]
    scaled = kept[volumes].mul(HEAD / kept[named[0]], axis=0)
    return kept.assign(**{str(column): scaled[column] for column in volumes}), problems


def write_measures(identities: Mapping[str, str], settings: CohortSettings, out: ShardFiles) -> None:
    """Read and write the measures of all subjects, subject -> FreeSurfer's id.

    The array `measures` is float32 (n, d), subjects ascending; metadata: subjects, regions (names of the measures).

    Raises:
        UserError: a table is unusable, a subject's measures are unusable and `on_invalid` is `error`, or all are.
    """
    morphometry = read_measures(identities, settings)
    for subject, problem in sorted(morphometry.problems.items()):
        if settings.on_invalid == "error":
            raise UserError(problem)
        logger.warning("%s has no measures: %s", subject, problem)
    subjects, columns = list(map(str, morphometry.values.index)), list(map(str, morphometry.values.columns))
    measures = morphometry.values.to_numpy(np.float32)
    write_arrays(out.series, {"measures": measures}, {"subjects": subjects, "regions": columns})
    checksums = {
        subject: hashlib.sha256(row.tobytes()).hexdigest() for subject, row in zip(subjects, measures, strict=True)
    }
    write_table(out.quality, quality_without_scan(sorted(identities), checksums, morphometry.problems))
    write_table(out.coverage, coverage_without_scan())
    logger.info("%d measures of %d subjects, %d without", len(columns), len(subjects), len(morphometry.problems))


def read_measures(identities: Mapping[str, str], settings: CohortSettings) -> Morphometry:
    """Read the measures of all subjects, subject -> FreeSurfer's id, and the causes of absent ones.

    Raises:
        UserError: a table or the measures of all subjects are unusable.
    """
    source = settings.freesurfer
    problems: dict[str, str] = {}
    if source.subjects_dir is None:
        tables = [read_freesurfer_table(path, source) for path in source.tables]
        for table in tables:
            _refuse_phenotypes(table, settings)
    else:
        table, problems = read_subjects_dir(identities, source)
        tables = [table]
    usable = {subject: identity for subject, identity in identities.items() if subject not in problems}
    measures = read_morphometry(tables, usable, source, settings.missing)
    problems |= measures.problems
    if measures.values.empty:
        raise UserError(
            f"freesurfer: expected a subject with whole measures among {len(identities)}, found none (first: "
            f"{problems[min(problems)]})"
        )
    return Morphometry(measures.values, problems, measures.remarks)


def read_subjects_dir(identities: Mapping[str, str], settings: FreeSurferSettings) -> tuple[TextTable, dict[str, str]]:
    """Read the stats files of all subjects as one table, and subject -> cause of an absent row.

    Raises:
        UserError: no subject's files can be read.
    """
    rows: dict[str, dict[str, str]] = {}
    problems: dict[str, str] = {}
    for subject, identity in sorted(identities.items()):
        try:
            rows[identity] = read_stats(subject, stats_folder(settings, identity), stats_names(settings))
        except UserError as error:
            problems[subject] = str(error)
    if not rows:
        raise UserError(problems[min(problems)])
    columns = tuple(dict.fromkeys(column for row in rows.values() for column in row))
    cells = {identity: tuple(row.get(column, "") for column in columns) for identity, row in rows.items()}
    return TextTable(str(settings.subjects_dir), columns, cells, {}, "volume"), problems


def _refuse_phenotypes(table: TextTable, settings: CohortSettings) -> None:
    """Refuse phenotypes among the features: every method would learn from them."""
    phenotypes = set(settings.columns.named)
    for column in table.columns:
        if column in phenotypes and is_feature(column, settings.freesurfer, table.kind):
            raise UserError(
                f"{table.file}: expected measures alone under `freesurfer.columns`, found {column!r}, which is a "
                "phenotype under `columns`; narrow the patterns, or name it under `freesurfer.leave_out`."
            )
