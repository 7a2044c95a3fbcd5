"""Download ABIDE I of the Preprocessed Connectomes Project: the phenotype table and CC200 series."""

import csv
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from nilearn.datasets import fetch_abide_pcp

from brainfed.runtime import UserError, full_disk, is_full

SOURCE = "https://s3.amazonaws.com/fcp-indi/data/Projects/ABIDE_Initiative"
TABLE = "ABIDE_pcp/Phenotypic_V1_0b_preprocessed1.csv"
SERIES = "ABIDE_pcp/cpac/filt_global/{}_rois_cc200.1D"
NO_FILE = "no_filename"

logger = logging.getLogger(__name__)


def fetch_abide(folder: str | Path, progress: Callable[[int, int, str], None]) -> None:
    """Download the files that `folder` lacks: C-PAC, band-passed, global signal regressed, CC200, all subjects.

    `folder` gets `ABIDE_pcp`; `progress` is called with (done, total, what) after each subject.

    Raises:
        UserError: the source cannot be reached or lacks a file, or the disk is full.
    """
    _fetch(folder, "the phenotype table", [])
    with (Path(folder) / TABLE).open(encoding="utf-8-sig", newline="") as file:
        listed = [row["FILE_ID"] for row in csv.DictReader(file) if row["FILE_ID"] != NO_FILE]
    for done, subject in enumerate(listed, start=1):
        if not (Path(folder) / SERIES.format(subject)).is_file():
            _fetch(folder, f"the series of {subject} ({done} of {len(listed)})", [subject])
        progress(done, len(listed), "series of ABIDE I")


def _fetch(folder: str | Path, what: str, subjects: Sequence[str]) -> None:
    try:
        fetch_abide_pcp(
            data_dir=Path(folder),
            pipeline="cpac",
            band_pass_filtering=True,
            global_signal_regression=True,
            derivatives=["rois_cc200"],
            quality_checked=False,
            verbose=0,
            FILE_ID=list(subjects),
        )
    except OSError as error:
        logger.info("%s", error)
        if is_full(error):
            raise full_disk(Path(folder), 0, 0) from error
        raise UserError(
            f"ABIDE I: expected {what} from {SOURCE}, could not fetch it ({type(error).__name__}); run this command "
            f"again on a machine with a network (it continues where it stopped), then copy {folder} here."
        ) from error
