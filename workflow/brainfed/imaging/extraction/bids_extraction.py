"""Extract one subject's region series from the runs of a BIDS derivative."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from brainfed.cohort.phenotype.framewise_displacement import mean_displacement
from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.sources.scan_run import BidsRun
from brainfed.imaging.extraction.extract_shard import write_extracted
from brainfed.imaging.extraction.extraction import TooShortError, check_cleaning, extract_scan
from brainfed.imaging.extraction.fmriprep_confounds import Regressors, load_regressors
from brainfed.imaging.extraction.join_runs import join_runs
from brainfed.imaging.scans.atlas import Atlas
from brainfed.imaging.scans.intact import same_content
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
    check_together(subject, [(run.image, found.tr) for run, found in used])
    kept = _long_enough(subject, used, settings) if averaged else [found for _, found in used]
    return join_runs(kept, apart=averaged)


def check_together(subject: str, runs: Sequence[tuple[str, float]]) -> None:
    """Refuse runs (image, repetition time in s) that one subject cannot have together.

    Raises:
        UserError: two have different repetition times, or the same content.
    """
    check_one_protocol(subject, runs)
    for (one, _), (other, _) in combinations(runs, 2):
        if same_content(one, other):
            raise UserError(
                f"Subject {subject}, {other}: expected a run of its own, found the content of {one}; remove the copy, "
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
    found = extract_scan(scan, atlas, settings.extraction, cleaning.tr, regressors.values, regressors.kept)
    return replace(
        found,
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
        subject: id, for messages.
        run: files of the run.
        given: repetition time of the config in s, which overrules sidecars and header.
        header: repetition time of the image header in s, NaN if it has none.
        volumes: number of volumes of the image.
        settings: of the cohort.

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
    for run, found in runs:
        if len(found.series) >= settings.min_timepoints:
            kept.append(found)
        else:
            logger.warning("%s: %s left out, %d volumes are kept", subject, run.name, len(found.series))
    if not kept:
        raise UserError(
            f"Subject {subject}: expected a run with at least {settings.min_timepoints} time points, found "
            f"{', '.join(str(len(found.series)) for _, found in runs)}; lower min_timepoints, or "
            "leave the subject out (on_invalid: drop)."
        )
    return kept
