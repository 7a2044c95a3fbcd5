"""Confounds and scrubbed volumes of an image of fMRIPrep, by nilearn's named strategies."""

import json
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from nilearn.interfaces.fmriprep import load_confounds_strategy
from nilearn.interfaces.fmriprep.load_confounds_utils import get_confounds_file
from numpy.typing import NDArray

from brainfed.cohort.settings.bids import ConfoundSettings
from brainfed.cohort.settings.cohort import ExtractionSettings
from brainfed.imaging.extraction.extraction import TooShortError
from brainfed.runtime.errors import UserError


@dataclass(frozen=True)
class Regressors:
    """Confounds and kept volumes of one run.

    Attributes:
        values: (volumes, confounds); None: no regression.
        kept: numbers of the kept volumes; None: all.
    """

    values: NDArray[np.float64] | None = None
    kept: NDArray[np.intp] | None = None


def load_regressors(subject: str, image: str, volumes: int, settings: ConfoundSettings) -> Regressors:
    """Load the confounds of a strategy; nilearn finds the table beside the image by its name.

    Raises:
        TooShortError: every volume is scrubbed.
        UserError: the table is absent, lacks a column, does not have one row a volume, or lacks a value beyond the
            first row.
    """
    if settings.strategy == "none":
        return Regressors()
    where = f"Subject {subject}, confounds of {image}"
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "All volumes were marked as motion outliers", RuntimeWarning)
            table, kept = load_confounds_strategy(image, denoise_strategy=settings.strategy, **settings.options)
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        found = f"{_cause(error, image)} ({' '.join(str(error).split())})"
        raise UserError(
            f"{where}: expected the columns of strategy {settings.strategy!r}, found {found}; choose another strategy "
            "or run fMRIPrep again."
        ) from error
    if len(table) != volumes:
        raise UserError(f"{where}: expected {volumes} rows, one a volume, found {len(table)}; run fMRIPrep again.")
    if kept is not None and len(kept) == 0:
        raise TooShortError(
            f"{where}: expected kept volumes, found all {volumes} scrubbed; raise bids.confounds.fd_threshold "
            "or leave the run out."
        )
    return Regressors(_finite(where, table), None if kept is None else np.asarray(kept, dtype=np.intp))


def _cause(error: Exception, image: str) -> str:
    """Defect of the table or the json beside it, by the error of reading them."""
    message = str(error)
    if isinstance(error, UnicodeDecodeError):
        return "a table that is not UTF-8"
    if isinstance(error, json.JSONDecodeError):
        return "a damaged json beside the table"
    if "associated json file" in message:
        return "no json beside the table"
    if "confound file" in message:
        return "no table, or several"
    if isinstance(error, OSError):
        return "a file that does not open"
    if isinstance(error, pd.errors.EmptyDataError):
        return "an empty table"
    if isinstance(error, TypeError) or "could not convert" in message:
        return "text in place of a number"
    header = Path(get_confounds_file(image, "smoothAROMA" in Path(image).name, False)).read_text().partition("\n")[0]
    return "a table without tabs" if "\t" not in header else "a table or a json without them"


def check_freedom(where: str, regressors: Regressors, volumes: int, tr: float, settings: ExtractionSettings) -> None:
    """Refuse as many regressors as degrees of freedom: only scaled-up rounding would remain.

    A band-pass leaves about 2 TR (low_pass - high_pass) degrees of freedom a volume.

    Raises:
        TooShortError: there are as many regressors as degrees of freedom.
    """
    if regressors.values is None:
        return
    count = regressors.values.shape[1]
    kept = volumes if regressors.kept is None else len(regressors.kept)
    share = 1.0
    if settings.low_pass is not None or settings.high_pass is not None:
        nyquist = 0.5 / tr
        share = ((settings.low_pass or nyquist) - (settings.high_pass or 0.0)) / nyquist
    if count >= share * kept:
        raise TooShortError(
            f"{where}: expected more degrees of freedom than the {count} regressors, found about {share * kept:.0f} "
            f"({kept} of {volumes} volumes kept, {100 * share:.0f} % of their band passed); choose a strategy with "
            "fewer regressors or a wider band, or leave the run out."
        )


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
