"""Download data sets of the TU Dortmund collection, with PyTorch Geometric."""

import logging
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from torch_geometric.datasets import TUDataset

from brainfed.cohort.sources._listing import NEEDED
from brainfed.runtime import UserError, full_disk, is_full

logger = logging.getLogger(__name__)


def fetch_data_sets(names: Sequence[str], folder: str | Path, progress: Callable[[int, int, str], None]) -> None:
    """Download the data sets that `folder` lacks, each to `NAME/raw/NAME_*.txt`.

    `progress` is called with (done, total, what) after each.

    Raises:
        UserError: the source cannot be reached or has no such data set, or the disk is full.
    """
    for done, name in enumerate(names, start=1):
        raw = Path(folder) / name / "raw"
        if not all((raw / f"{name}_{part}.txt").is_file() for part in NEEDED):
            shutil.rmtree(raw, ignore_errors=True)
            _fetch(name, Path(folder))
        progress(done, len(names), "data sets of graphs")


def _fetch(name: str, folder: Path) -> None:
    try:
        TUDataset(str(folder), name)
    except OSError as error:
        logger.info("%s", error)
        if is_full(error):
            raise full_disk(folder, 0, 0) from error
        raise UserError(
            f"{name}: expected the data set from {TUDataset.url}, could not fetch it ({type(error).__name__}); check "
            "the name, run this command again on a machine with a network (it continues where it stopped), then copy "
            f"{folder} here."
        ) from error
