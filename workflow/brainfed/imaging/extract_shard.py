"""Extract the region series of one part of a cohort from its NIfTI scans."""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from brainfed.cohort.settings import CohortSettings
from brainfed.imaging.atlas import Atlas
from brainfed.imaging.extraction import ScanFiles, extract
from brainfed.imaging.region_series import RegionSeries
from brainfed.imaging.shard import ShardFiles, write_shard


def extract_shard(scans: Mapping[str, ScanFiles], atlas: Atlas, settings: CohortSettings, out: ShardFiles) -> None:
    """Extract the region series of some subjects' NIfTI scans.

    Raises:
        UserError: a scan cannot be used and `on_invalid` is `error`.
    """

    def load(subject: str) -> RegionSeries:
        return extract(subject, scans[subject], atlas, settings.extraction, settings.confound_columns)

    with _quick_collection():
        write_shard(sorted(scans), load, lambda: atlas.regions, atlas.name, settings, out)


@contextmanager
def _quick_collection() -> Iterator[None]:
    """Spare the imported libraries the garbage collections that nilearn asks for several times an image.

    Each walks everything that nilearn and scikit-learn hold, about 0.1 s: most of a small scan's time.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
