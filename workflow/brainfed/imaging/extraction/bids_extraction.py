"""Extract one subject's region series from the runs of a BIDS derivative."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from brainfed.cohort.phenotype.framewise_displacement import mean_displacement
from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.sources.scan_run import BidsRun
from brainfed.imaging.extraction.extract_shard import write_extracted
from brainfed.imaging.extraction.extraction import TooShortError, check_filter, extract_scan
from brainfed.imaging.extraction.fmriprep_confounds import check_freedom, load_regressors
from brainfed.imaging.extraction.join_runs import join_runs
from brainfed.imaging.scans.atlas import Atlas
from brainfed.imaging.scans.probabilistic_atlas import ProbabilisticAtlas
from brainfed.imaging.scans.repetition_time import agree, check_one_protocol, chosen_tr, sidecar_tr
from brainfed.imaging.scans.scan import read_scan
from brainfed.imaging.series.region_series import RegionSeries
from brainfed.imaging.series.shard import ShardFiles
from brainfed.runtime.errors import UserError

logger = logging.getLogger(__name__)


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

    def load(subject: str) -> RegionSeries:
        return extract_subject(subject, subjects[subject], atlas, settings)

    write_extracted(sorted(subjects), load, atlas, settings, out)


def extract_subject(
    subject: str, files: SubjectRuns, atlas: Atlas | ProbabilisticAtlas, settings: CohortSettings
) -> RegionSeries:
    """Average and clean every run of a subject and join them; an average leaves out runs that are too short.

    Raises:
        UserError: a run is unusable, the runs differ in their repetition time, or no run keeps enough volumes for
            an average of connectivity.
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
    check_one_protocol(subject, [(run.image, found.tr) for run, found in used])
    kept = _long_enough(subject, used, settings) if averaged else [found for _, found in used]
    return join_runs(kept, apart=averaged)


def extract_run(
    subject: str, run: BidsRun, tr: float | None, atlas: Atlas | ProbabilisticAtlas, settings: CohortSettings
) -> RegionSeries:
    """Average and clean one run; the repetition time is `tr`, else the sidecars', else the header's.

    Raises:
        TooShortError: too few volumes are kept.
        UserError: the image, its mask, its sidecars or its confounds are unusable.
    """
    scan = read_scan(subject, run.image, run.mask)
    stated = sidecar_tr(subject, run.sidecars)
    chosen = chosen_tr(tr, stated, scan.tr)
    regressors = load_regressors(subject, run.image, scan.voxels.shape[3], settings.bids.confounds)
    check_filter(subject, run.image, scan.voxels.shape[3], chosen, settings.extraction)
    where = f"Subject {subject}, {run.image}"
    check_freedom(where, regressors, scan.voxels.shape[3], chosen, settings.extraction)
    found = extract_scan(scan, atlas, settings.extraction, chosen, regressors.values, regressors.kept)
    return replace(
        found,
        mean_fd=mean_displacement([] if run.confounds is None else [run.confounds]),
        header_tr=scan.tr if tr is None and not agree(stated, scan.tr) else float("nan"),
    )


def _long_enough(
    subject: str, runs: Sequence[tuple[BidsRun, RegionSeries]], settings: CohortSettings
) -> list[RegionSeries]:
    """Runs that are long enough for a connectivity of their own."""
    kept: list[RegionSeries] = []
    for run, found in runs:
        if len(found.series) >= settings.min_timepoints:
            kept.append(found)
        else:
            logger.warning("%s: %s left out, %d volumes are kept", subject, run.name, len(found.series))
    if not kept:
        raise UserError(
            f"Subject {subject}: expected a run with at least {settings.min_timepoints} time points, found "
            f"{', '.join(str(len(found.series)) for _, found in runs)}; lower min_timepoints, or let "
            "on_invalid: drop leave the subject out."
        )
    return kept
