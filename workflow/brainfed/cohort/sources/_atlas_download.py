"""Download the known atlases with nilearn's fetchers and write each as labels and a region table."""

import gzip
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pandas as pd
from nilearn.datasets import (
    fetch_atlas_aal,
    fetch_atlas_basc_multiscale_2015,
    fetch_atlas_craddock_2012,
    fetch_atlas_harvard_oxford,
)

from brainfed.runtime import UserError, atomic, full_disk, is_full, write_tsv

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


def fetch_atlases(names: Sequence[str], folder: str | Path, progress: Callable[[int, int, str], None]) -> None:
    """Download the atlases that `folder` lacks to NAME.nii.gz and NAME.tsv; downloads stay in `folder`/downloads.

    `progress` is called with (done, total, what) after each.

    Raises:
        UserError: a source cannot be reached, or returned another file than the atlas.
    """
    for done, name in enumerate(names, start=1):
        image, table = Path(folder) / f"{name}.nii.gz", Path(folder) / f"{name}.tsv"
        if not (image.is_file() and table.is_file()):
            labels, regions = parcellation_of(name, _fetch(name, Path(folder)))
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


def _fetch(name: str, folder: Path) -> Any:
    try:
        return FETCHERS[name](folder / "downloads")
    except OSError as error:
        logger.info("%s", error)
        if is_full(error):
            raise full_disk(Path(folder), 0, 0) from error
        raise UserError(
            f"Atlas {name}: expected the files of its source on the web, found none ({type(error).__name__}); run "
            f"this command again on a machine with a network, then copy {folder} here."
        ) from error
