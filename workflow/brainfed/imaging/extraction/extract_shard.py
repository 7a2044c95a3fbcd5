"""Extract the region series of one part of a cohort from its NIfTI scans."""

import gc
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.imaging.extraction.extraction import ScanFiles, extract
from brainfed.imaging.scans.atlas import Atlas
from brainfed.imaging.scans.probabilistic_atlas import ProbabilisticAtlas
from brainfed.imaging.series.region_series import RegionSeries
from brainfed.imaging.series.shard import ShardFiles, write_shard

logger = logging.getLogger(__name__)


def extract_shard(
    scans: Mapping[str, ScanFiles], atlas: Atlas | ProbabilisticAtlas, settings: CohortSettings, out: ShardFiles
) -> None:
    """Extract the region series of some subjects' NIfTI scans.

    Raises:
        UserError: a scan is unusable and `on_invalid` is `error`.
    """

    def load(subject: str) -> RegionSeries:
        return extract(subject, scans[subject], atlas, settings.extraction, settings.confound_columns)

    write_extracted(sorted(scans), load, atlas, settings, out)


def write_extracted(
    subjects: Sequence[str],
    load: Callable[[str], RegionSeries],
    atlas: Atlas | ProbabilisticAtlas,
    settings: CohortSettings,
    out: ShardFiles,
) -> None:
    """Load subjects, in ascending order of id, with nilearn and write their part. A resampling of the atlas is logged
    once. Errors as in `write_shard`.
    """
    logged: set[str] = set()

    def load_and_log(subject: str) -> RegionSeries:
        found = load(subject)
        if found.resampled and found.resampled not in logged:
            logged.add(found.resampled)
            logger.info("Atlas %s resampled %s (first for %s)", atlas.name, found.resampled, subject)
        if found.suspicion:
            logger.warning("%s: unexpected space for atlas %s: %s", subject, atlas.name, found.suspicion)
        return found

    exempt_libraries()
    write_shard(subjects, load_and_log, lambda: atlas.regions, atlas.name, settings, out)


@cache
def exempt_libraries() -> None:
    """Exempt what is imported from garbage collections, for the rest of the process.

    nilearn triggers several for an image, and each visits all objects of nilearn and scikit-learn: about 0.1 s.
    """
    gc.freeze()
