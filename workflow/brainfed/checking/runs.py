"""fMRIPrep's runs by headers and tables: image, brain mask, sidecars and confounds of each."""

import math
from collections.abc import Callable

import numpy as np

from brainfed.checking.finding import boundary
from brainfed.checking.images import Space, read_whole_header
from brainfed.checking.people import Look
from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.sources.listed import ListedSubject
from brainfed.cohort.sources.scan_run import BidsRun
from brainfed.imaging.extraction.bids_extraction import check_together, prepare_cleaning
from brainfed.imaging.extraction.confounds import COSINES
from brainfed.imaging.extraction.extraction import TooShortError
from brainfed.imaging.scans.brain_mask import read_brain
from brainfed.imaging.scans.intact import content_of
from brainfed.imaging.series.shard import check_length
from brainfed.runtime.errors import Refuse, UserError


def look_at_runs(listed: ListedSubject, settings: CohortSettings, space: Space, refuse: Refuse) -> Look | None:
    """The look at the files of one subject's runs; every run's first mistake goes to `refuse`; None if one has any.

    The time points are those kept of all runs that are joined, or of the longest where connectivity is averaged; a run
    that is too short is left out of an average.
    """
    averaged = settings.bids.runs == "average"
    looks: list[tuple[BidsRun, Look]] = []
    short: list[UserError] = []
    wrong: list[UserError] = []
    for run in listed.runs:
        with boundary(f"Subject {listed.subject}, {run.image}", wrong.append):
            try:
                looks.append((run, _look_at_run(listed, run, settings, space)))
            except TooShortError as error:
                (short if averaged else wrong).append(error)
    wrong += [] if looks else short[-1:]
    for mistake in wrong:
        refuse(mistake)
    if wrong:
        return None
    lengths = [look.timepoints for _, look in looks]
    kept = max(lengths) if averaged else sum(lengths)
    checks: tuple[Callable[[], None], ...] = (
        lambda: check_together(listed.subject, [(run.image, look.tr) for run, look in looks]),
        lambda: check_length(listed.subject, kept, settings.min_timepoints),
    )
    for check in checks:
        with boundary(f"Subject {listed.subject}", refuse):
            check()
    contradicted = [look.header_tr for _, look in looks if not np.isnan(look.header_tr)]
    return Look(
        kept,
        " ".join(look.twin for _, look in looks),
        looks[0][1].tr,
        header_tr=contradicted[0] if contradicted else float("nan"),
        cosines=any(look.cosines for _, look in looks),
        voxels=sum(look.voxels for _, look in looks),
    )


def _look_at_run(listed: ListedSubject, run: BidsRun, settings: CohortSettings, space: Space) -> Look:
    subject = listed.subject
    header = read_whole_header(subject, run.image)
    volumes = header.shape[3]
    if run.mask is not None:
        read_brain(subject, run.mask, run.image, header.shape[:3], header.affine)
    cleaning = prepare_cleaning(subject, run, settings.tr.get(listed.site), header.tr, volumes, settings)
    space.place(subject, run.image, header)
    regressors = cleaning.regressors
    return Look(
        volumes if regressors.kept is None else len(regressors.kept),
        content_of(run.image),
        cleaning.tr,
        header_tr=cleaning.header_tr,
        cosines=any(name.startswith(COSINES) for name in regressors.names),
        voxels=math.prod(header.shape),
    )
