"""Download ABIDE I, the known atlases and data sets of the TU Dortmund collection (nilearn, PyTorch Geometric)."""

import csv
import gzip
import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pandas as pd
from nilearn.datasets import (
    fetch_abide_pcp,
    fetch_atlas_aal,
    fetch_atlas_basc_multiscale_2015,
    fetch_atlas_craddock_2012,
    fetch_atlas_harvard_oxford,
)

from brainfed.cohort.sources._listing import NEEDED
from brainfed.runtime import UserError, atomic, full_disk, is_full, write_tsv

SOURCE = "https://s3.amazonaws.com/fcp-indi/data/Projects/ABIDE_Initiative"
TABLE = "ABIDE_pcp/Phenotypic_V1_0b_preprocessed1.csv"
SERIES = "ABIDE_pcp/cpac/filt_global/{}_rois_cc200.1D"
NO_FILE = "no_filename"

CRADDOCK_REGIONS = 200

FETCHERS: dict[str, Callable[[Path], Any]] = {
    "basc122": lambda folder: fetch_atlas_basc_multiscale_2015(
        data_dir=folder, resolution=122, version="sym", verbose=0
    ),
    "cc200": lambda folder: fetch_atlas_craddock_2012(
        data_dir=folder, homogeneity="temporal", grp_mean=False, verbose=0
    ),
    "harvard-oxford": lambda folder: fetch_atlas_harvard_oxford("cortl-maxprob-thr25-2mm", data_dir=folder, verbose=0),
    "aal": lambda folder: fetch_atlas_aal(version="SPM12", data_dir=folder, verbose=0),
}
"""BASC: 122 clusters, symmetric template. Craddock: two-level, by temporal correlation, as PCP's CC200.
Harvard-Oxford: cortex, probability above 25 %, hemispheres apart, 2 mm. AAL: the 116 regions of SPM12's."""

logger = logging.getLogger(__name__)

Progress = Callable[[int, int, str], None]


@contextmanager
def _fetching(what: str, folder: str | Path, check: str = "") -> Iterator[None]:
    """Turn a download that fails in the body into one sentence, which begins with what was expected.

    Raises:
        UserError: the source cannot be reached or lacks the file, or the disk is full.
    """
    try:
        yield
    except OSError as error:
        logger.info("%s", error)
        if is_full(error):
            raise full_disk(Path(folder), 0, 0) from error
        raise UserError(
            f"{what}, could not fetch it ({type(error).__name__}); {check}run this command again on a machine with a "
            f"network (it continues where it stopped), then copy {folder} here."
        ) from error


def fetch_abide(folder: str | Path, progress: Progress) -> None:
    """Download the files that `folder` lacks: C-PAC, band-passed, global signal regressed, CC200, all subjects.

    `folder` gets `ABIDE_pcp`; `progress` is called with (done, total, what) after each subject.

    Raises:
        UserError: the source cannot be reached or lacks a file, or the disk is full.
    """
    _fetch_series(folder, "the phenotype table", [])
    with (Path(folder) / TABLE).open(encoding="utf-8-sig", newline="") as file:
        listed = [row["FILE_ID"] for row in csv.DictReader(file) if row["FILE_ID"] != NO_FILE]
    for done, subject in enumerate(listed, start=1):
        if not (Path(folder) / SERIES.format(subject)).is_file():
            _fetch_series(folder, f"the series of {subject} ({done} of {len(listed)})", [subject])
        progress(done, len(listed), "series of ABIDE I")


def _fetch_series(folder: str | Path, what: str, subjects: Sequence[str]) -> None:
    with _fetching(f"ABIDE I: expected {what} from {SOURCE}", folder):
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


def fetch_atlases(names: Sequence[str], folder: str | Path, progress: Progress) -> None:
    """Download the atlases that `folder` lacks to NAME.nii.gz and NAME.tsv; downloads stay in `folder`/downloads.

    `progress` is called with (done, total, what) after each.

    Raises:
        UserError: a source cannot be reached, or returned another file than the atlas.
    """
    for done, name in enumerate(names, start=1):
        image, table = Path(folder) / f"{name}.nii.gz", Path(folder) / f"{name}.tsv"
        if not (image.is_file() and table.is_file()):
            with _fetching(f"Atlas {name}: expected the file of its source on the web", folder):
                fetched = FETCHERS[name](Path(folder) / "downloads")
            labels, regions = parcellation_of(name, fetched)
            write_tsv(table, regions, keep_names=True)
            with atomic(image) as temporary:
                temporary.write_bytes(gzip.compress(labels.to_bytes(), mtime=0))
            logger.info("%s: %d regions", name, len(regions))
        progress(done, len(names), "atlas")


def parcellation_of(name: str, fetched: Any) -> tuple[nib.Nifti1Image, pd.DataFrame]:
    """The 3D image of labels and the region table (index, name) of what nilearn's fetcher returns.

    `fetched` has `maps`, the image or its path, and optionally `lut`, the look-up table with index and name.

    Raises:
        UserError: the image holds no labels, or labels without a name in the look-up table.
    """
    source = fetched["maps"] if isinstance(fetched["maps"], nib.Nifti1Image) else nib.load(fetched["maps"])
    values = np.asanyarray(source.dataobj)
    if values.ndim == 4:
        values = _with_about(CRADDOCK_REGIONS, values)
    labels = np.rint(values).astype(np.int16)
    present = np.unique(labels[labels != 0])
    if not np.array_equal(labels, values) or not present.size:
        raise UserError(
            f"Atlas {name}: expected an image of labels, found fractions or zeros only; delete and fetch it."
        )
    image = nib.Nifti1Image(labels, source.affine)
    if fetched.get("lut") is None:
        return image, pd.DataFrame({"index": present, "name": present.astype(str)})
    table = fetched["lut"][["index", "name"]].astype({"index": int, "name": str})
    table = table[table["index"] != 0].reset_index(drop=True)
    unnamed = np.setdiff1d(present, table["index"])
    if unnamed.size:
        raise UserError(
            f"Atlas {name}: expected its {len(table)} labels, found {unnamed.size} more (first: {unnamed[0]})."
        )
    return image, table


def _with_about(regions: int, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Parcellation along the last axis with the number of regions nearest to `regions`."""
    counts = [np.unique(values[..., place]).size - 1 for place in range(values.shape[3])]
    return np.asarray(values[..., int(np.argmin(np.abs(np.asarray(counts) - regions)))])


def fetch_data_sets(names: Sequence[str], folder: str | Path, progress: Progress) -> None:
    """Download the data sets that `folder` lacks, each to `NAME/raw/NAME_*.txt`.

    `progress` is called with (done, total, what) after each.

    Raises:
        UserError: the source cannot be reached or has no such data set, or the disk is full.
    """
    from torch_geometric.datasets import TUDataset  # imports torch, which the other downloads do not need

    for done, name in enumerate(names, start=1):
        raw = Path(folder) / name / "raw"
        if not all((raw / f"{name}_{part}.txt").is_file() for part in NEEDED):
            shutil.rmtree(raw, ignore_errors=True)
            with _fetching(f"{name}: expected the data set from {TUDataset.url}", folder, "check the name, "):
                TUDataset(str(folder), name)
        progress(done, len(names), "data sets of graphs")
