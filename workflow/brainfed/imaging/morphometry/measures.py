"""Write a cohort's FreeSurfer measures, with quality and coverage tables as of region series."""

import hashlib
import logging
from collections.abc import Mapping

import numpy as np

from brainfed.cohort.quality.without_scan import coverage_without_scan, quality_without_scan
from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.settings.freesurfer import FreeSurferSettings
from brainfed.cohort.sources.freesurfer.files import stats_folder, stats_names
from brainfed.imaging.morphometry.features import Morphometry, read_morphometry
from brainfed.imaging.morphometry.freesurfer_stats import read_stats
from brainfed.imaging.morphometry.freesurfer_table import TextTable, read_freesurfer_table
from brainfed.imaging.morphometry.measure_names import is_feature
from brainfed.imaging.series.shard import ShardFiles
from brainfed.runtime.artefacts import write_arrays, write_table
from brainfed.runtime.errors import UserError

logger = logging.getLogger(__name__)


def write_measures(identities: Mapping[str, str], settings: CohortSettings, out: ShardFiles) -> None:
    """Read and write the measures of all subjects, subject -> FreeSurfer's id.

    The array `measures` is float32 (n, d), subjects ascending; metadata: subjects, regions (names of the measures).

    Raises:
        UserError: a table is unusable, a subject's measures are unusable and `on_invalid` is `error`, or all are.
    """
    found = read_measures(identities, settings)
    for subject, problem in sorted(found.problems.items()):
        if settings.on_invalid == "error":
            raise UserError(problem)
        logger.warning("%s has no measures: %s", subject, problem)
    subjects, columns = list(map(str, found.values.index)), list(map(str, found.values.columns))
    measures = found.values.to_numpy(np.float32)
    write_arrays(out.series, {"measures": measures}, {"subjects": subjects, "regions": columns})
    checksums = {
        subject: hashlib.sha256(row.tobytes()).hexdigest() for subject, row in zip(subjects, measures, strict=True)
    }
    write_table(out.quality, quality_without_scan(sorted(identities), checksums, found.problems))
    write_table(out.coverage, coverage_without_scan())
    logger.info("%d measures of %d subjects, %d without", len(columns), len(subjects), len(found.problems))


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
    found = read_morphometry(tables, usable, source, settings.missing)
    problems |= found.problems
    if found.values.empty:
        raise UserError(
            f"freesurfer: expected a subject with whole measures among {len(identities)}, found none (first: "
            f"{problems[min(problems)]})"
        )
    return Morphometry(found.values, problems, found.remarks)


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
