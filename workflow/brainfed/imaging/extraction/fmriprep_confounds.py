"""Confounds and scrubbed volumes of an image of fMRIPrep, by nilearn's named strategies."""

import contextlib
import json
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from nilearn.interfaces.fmriprep import load_confounds_strategy
from numpy.typing import NDArray

from brainfed.cohort.settings.bids import ConfoundSettings
from brainfed.cohort.sources.scan_run import BidsRun
from brainfed.imaging.extraction.confounds import ConfoundTable, read_confound_table
from brainfed.imaging.extraction.extraction import TooShortError
from brainfed.runtime.errors import UserError


@dataclass(frozen=True)
class Regressors:
    """Confounds and kept volumes of one run.

    Attributes:
        values: (volumes, confounds); None: no regression.
        kept: numbers of the kept volumes; None: all.
        names: of the confounds.
    """

    values: NDArray[np.float64] | None = None
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
        found = f"{_cause(error)} ({' '.join(str(error).replace('[]', '').split())})"
        raise UserError(
            f"{where}: expected the columns of strategy {settings.strategy!r}, found {found}; choose another strategy "
            "or run fMRIPrep again."
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


def _finite(where: str, table: pd.DataFrame) -> NDArray[np.float64] | None:
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
