"""Extract one shard of a cohort from the runs of a BIDS derivative or from images."""

import contextlib
import gc
import json
import logging
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd
from nilearn.interfaces.fmriprep import load_confounds_strategy
from numpy.typing import NDArray

from brainfed.cohort.phenotype import mean_displacement
from brainfed.cohort.settings import CohortSettings, ConfoundSettings
from brainfed.cohort.sources import BidsRun
from brainfed.imaging.extraction._confounds import ConfoundTable, read_confound_table
from brainfed.imaging.extraction._extraction import (
    ScanFiles,
    TooShortError,
    agree,
    check_cleaning,
    check_one_protocol,
    chosen_tr,
    extract,
    extract_scan,
    join_runs,
    sidecar_tr,
)
from brainfed.imaging.scans import Atlas, ProbabilisticAtlas, read_scan, same_content
from brainfed.imaging.series import RegionSeries, ShardFiles, write_shard
from brainfed.runtime import Float64, UserError

# Confounds and scrubbed volumes of an image of fMRIPrep, by nilearn's named strategies.


@dataclass(frozen=True)
class Regressors:
    """Confounds and kept volumes of one run.

    Attributes:
        values: (volumes, confounds); None: no regression.
        kept: numbers of the kept volumes; None: all.
        names: of the confounds.
    """

    values: Float64 | None = None
    kept: NDArray[np.intp] | None = None
    names: tuple[str, ...] = ()


def load_regressors(subject: str, run: BidsRun, volumes: int, settings: ConfoundSettings) -> Regressors:
    """Load the confounds of a strategy.

    Raises:
        TooShortError: every volume is scrubbed.
        UserError: the table is absent, lacks a column, does not have one row a volume, or lacks a value beyond the
            first row.
    """
    if settings.strategy == "none":
        return Regressors()
    where = f"Subject {subject}, confounds of {run.image}"
    if run.confounds is None:
        raise UserError(f"{where}: expected a table of confounds, found none; run fMRIPrep again.")
    content = read_confound_table(where, run.confounds, volumes)
    if content.names is None:
        raise UserError(f"{where}: expected the header of fMRIPrep's table, found numbers; run fMRIPrep again.")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "All volumes were marked as motion outliers", RuntimeWarning)
            table, kept = _by_nilearn(content, run.components, settings)
    except (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError) as error:
        said = " ".join(str(error).replace("[]", "").split())
        raise UserError(
            f"{where}: expected the columns of strategy {settings.strategy!r}, found {_cause(error)} ({said}); choose "
            "another strategy or run fMRIPrep again."
        ) from error
    if kept is not None and len(kept) == 0:
        raise TooShortError(
            f"{where}: expected kept volumes, found all {volumes} scrubbed; raise bids.confounds.fd_threshold "
            "or leave the run out."
        )
    volumes_kept = None if kept is None else np.asarray(kept, dtype=np.intp)
    return Regressors(_finite(where, table), volumes_kept, tuple(table.columns))


def _by_nilearn(
    content: ConfoundTable, components: str | None, settings: ConfoundSettings
) -> tuple[pd.DataFrame, NDArray[np.intp] | None]:
    """Confounds and kept volumes by nilearn, which finds files by the name of an image.

    It is given names of its own in an empty folder: it replaces "tsv" anywhere in a path, and refuses other endings
    and entities than it knows.
    """
    described = None if components is None else Path(components).read_bytes()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("sub-1_desc-confounds_timeseries.tsv").write_text(content.as_text(), encoding="utf-8")
        if described is not None:
            Path("sub-1_desc-confounds_timeseries.json").write_bytes(described)
        kind = "smoothAROMAnonaggr" if settings.strategy == "ica_aroma" else "preproc"
        table, kept = load_confounds_strategy(
            f"sub-1_desc-{kind}_bold.nii.gz", denoise_strategy=settings.strategy, **settings.options
        )
    return table, kept


def _cause(error: Exception) -> str:
    """Defect of the table or the json beside it, by the error of reading them."""
    message = str(error)
    if isinstance(error, UnicodeDecodeError | json.JSONDecodeError):
        return "a damaged json beside the table"
    if isinstance(error, OSError):
        return "a file that does not open"
    if isinstance(error, TypeError) or "could not convert" in message:
        return "text in place of a number"
    return "a table or a json without them"


def _finite(where: str, table: pd.DataFrame) -> Float64 | None:
    """Values of a table; None for a table without columns."""
    if table.shape[1] == 0:
        return None
    values = table.to_numpy(dtype=np.float64)
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, column = bad[0]
        raise UserError(
            f"{where}: expected a finite value in column {table.columns[column]!r}, line {row + 2}, found a missing "
            "one; run fMRIPrep again or choose another strategy."
        )
    return values


logger = logging.getLogger(__name__)

Files = TypeVar("Files")


@dataclass(frozen=True)
class SubjectRuns:
    """Runs of one subject in order; `tr` in s overrules sidecars and headers."""

    runs: tuple[BidsRun, ...]
    tr: float | None = None


def extract_bids_shard(
    subjects: Mapping[str, SubjectRuns], atlas: Atlas | ProbabilisticAtlas, settings: CohortSettings, out: ShardFiles
) -> None:
    """Extract the region series of some subjects.

    Raises:
        UserError: a run is unusable and `on_invalid` is `error`.
    """
    write_extracted(subjects, partial(extract_subject, atlas=atlas, settings=settings), atlas, settings, out)


def extract_subject(
    subject: str, files: SubjectRuns, atlas: Atlas | ProbabilisticAtlas, settings: CohortSettings
) -> RegionSeries:
    """Average and clean every run of a subject and join them; an average leaves out runs that are too short.

    Raises:
        UserError: a run is unusable, the runs differ in their repetition time, one is a copy of another, or no run
            keeps enough volumes for an average of connectivity.
    """
    averaged = settings.bids.runs == "average"
    used: list[tuple[BidsRun, RegionSeries]] = []
    for run in files.runs:
        try:
            used.append((run, extract_run(subject, run, files.tr, atlas, settings)))
        except TooShortError as error:
            if not averaged or (run is files.runs[-1] and not used):
                raise
            logger.warning("%s: %s left out: %s", subject, run.name, error)
    check_together(subject, [(run.image, series.tr) for run, series in used])
    kept = _long_enough(subject, used, settings) if averaged else [series for _, series in used]
    return join_runs(kept, apart=averaged)


def check_together(subject: str, runs: Sequence[tuple[str, float]]) -> None:
    """Refuse runs (image, repetition time in s) that one subject cannot have together.

    Raises:
        UserError: two have different repetition times, or the same content.
    """
    check_one_protocol(subject, runs)
    for (file, _), (other, _) in combinations(runs, 2):
        if same_content(file, other):
            raise UserError(
                f"Subject {subject}, {other}: expected a run of its own, found the content of {file}; remove the copy, "
                "or choose the runs under bids.run_numbers or bids.sessions."
            )


def extract_run(
    subject: str, run: BidsRun, tr: float | None, atlas: Atlas | ProbabilisticAtlas, settings: CohortSettings
) -> RegionSeries:
    """Average and clean one run; the repetition time is `tr`, else the sidecars', else the header's.

    Raises:
        TooShortError: too few volumes are kept.
        UserError: the image, its mask, its sidecars or its confounds are unusable.
    """
    scan = read_scan(subject, run.image, run.mask)
    cleaning = prepare_cleaning(subject, run, tr, scan.tr, scan.voxels.shape[3], settings)
    regressors = cleaning.regressors
    series = extract_scan(scan, atlas, settings.extraction, cleaning.tr, regressors.values, regressors.kept)
    return replace(
        series,
        mean_fd=mean_displacement([] if run.confounds is None else [run.confounds]),
        header_tr=cleaning.header_tr,
    )


@dataclass(frozen=True)
class Cleaning:
    """What a run is cleaned with, from the files beside its image.

    Attributes:
        tr: repetition time in s, NaN if unknown.
        header_tr: that of the image header if a sidecar contradicts it, else NaN.
        regressors: confounds and kept volumes.
    """

    tr: float
    header_tr: float
    regressors: Regressors


def prepare_cleaning(
    subject: str, run: BidsRun, given: float | None, header: float, volumes: int, settings: CohortSettings
) -> Cleaning:
    """What a run is cleaned with; a job and `brainfed check` decide here.

    Args:
        given: repetition time of the config in s, which overrules sidecars and header.
        header: repetition time of the image header in s, NaN if it has none.

    Raises:
        TooShortError: too few volumes are kept.
        UserError: a sidecar, the repetition time or the confounds are unusable.
    """
    stated = sidecar_tr(subject, run.sidecars) if given is None else float("nan")
    tr = chosen_tr(given, stated, header)
    regressors = load_regressors(subject, run, volumes, settings.bids.confounds)
    where = f"Subject {subject}, {run.image}"
    check_cleaning(where, volumes, tr, settings.extraction, regressors.values, regressors.kept)
    contradicted = given is None and not agree(stated, header)
    return Cleaning(tr, header if contradicted else float("nan"), regressors)


def _long_enough(
    subject: str, runs: Sequence[tuple[BidsRun, RegionSeries]], settings: CohortSettings
) -> list[RegionSeries]:
    """Runs that are long enough for a connectivity of their own."""
    kept: list[RegionSeries] = []
    for run, series in runs:
        if len(series.series) >= settings.min_timepoints:
            kept.append(series)
        else:
            logger.warning("%s: %s left out, %d volumes are kept", subject, run.name, len(series.series))
    if not kept:
        raise UserError(
            f"Subject {subject}: expected a run with at least {settings.min_timepoints} time points, found "
            f"{', '.join(str(len(series.series)) for _, series in runs)}; lower min_timepoints, or "
            "leave the subject out (on_invalid: drop)."
        )
    return kept


def extract_shard(
    scans: Mapping[str, ScanFiles], atlas: Atlas | ProbabilisticAtlas, settings: CohortSettings, out: ShardFiles
) -> None:
    """Extract the region series of some subjects' NIfTI scans.

    Raises:
        UserError: a scan is unusable and `on_invalid` is `error`.
    """
    columns = settings.confound_columns
    load = partial(extract, atlas=atlas, settings=settings.extraction, confound_columns=columns)
    write_extracted(scans, load, atlas, settings, out)


def write_extracted(
    files: Mapping[str, Files],
    load: Callable[[str, Files], RegionSeries],
    atlas: Atlas | ProbabilisticAtlas,
    settings: CohortSettings,
    out: ShardFiles,
) -> None:
    """Load the files of subjects, in ascending order of id, with nilearn and write their part.

    A resampling of the atlas is logged once. Errors as in `write_shard`.
    """
    logged: set[str] = set()

    def load_and_log(subject: str) -> RegionSeries:
        series = load(subject, files[subject])
        if series.resampled and series.resampled not in logged:
            logged.add(series.resampled)
            logger.info("Atlas %s resampled %s (first for %s)", atlas.name, series.resampled, subject)
        if series.suspicion:
            logger.warning("%s: unexpected space for atlas %s: %s", subject, atlas.name, series.suspicion)
        return series

    exempt_libraries()
    write_shard(sorted(files), load_and_log, lambda: atlas.regions, atlas.name, settings, out)


@cache
def exempt_libraries() -> None:
    """Exempt what is imported from garbage collections, for the rest of the process.

    nilearn triggers several for an image, and each visits all objects of nilearn and scikit-learn: about 0.1 s.
    """
    gc.freeze()
