"""fMRIPrep's runs by headers and tables: image, brain mask, sidecars and confounds of each."""

from collections.abc import Callable

import nibabel as nib
import numpy as np
from nibabel.filebasedimages import ImageFileError

from brainfed.checking.images import Space, content_of, read_whole_header
from brainfed.checking.people import Look
from brainfed.cohort.bids_run import BidsRun
from brainfed.cohort.listed import ListedSubject
from brainfed.cohort.settings import CohortSettings
from brainfed.imaging.brain_mask import refuse_other_grid
from brainfed.imaging.extraction import check_filter
from brainfed.imaging.fmriprep_confounds import check_freedom, load_regressors
from brainfed.imaging.repetition_time import agree, sidecar_tr
from brainfed.imaging.scan import ScanHeader
from brainfed.imaging.shard import check_length
from brainfed.runtime.errors import UserError


def look_at_runs(
    listed: ListedSubject, settings: CohortSettings, space: Space, refuse: Callable[[UserError], None]
) -> Look | None:
    """What the files of one subject's runs say; every run's first mistake goes to `refuse`, None if one has any.

    The time points are those kept of all runs that are joined, or of the longest where connectivity is averaged.
    """
    looks: list[Look] = []
    for run in listed.runs:
        try:
            looks.append(_look_at_run(listed, run, settings, space))
        except UserError as error:
            refuse(error)
    if len(looks) < len(listed.runs):
        return None
    first = looks[0]
    for run, look in zip(listed.runs, looks, strict=True):
        if not agree(look.tr, first.tr):
            refuse(
                UserError(
                    f"Subject {listed.subject}, {run.image}: expected the repetition time of {listed.runs[0].image}, "
                    f"{first.tr:g} s, found {look.tr:g} s; choose the runs of one protocol under bids.run_numbers or "
                    "bids.sessions."
                )
            )
    lengths = [look.timepoints for look in looks]
    kept = max(lengths) if settings.bids.runs == "average" else sum(lengths)
    try:
        check_length(listed.subject, kept, settings.min_timepoints)
    except UserError as error:
        refuse(error)
    return Look(kept, " ".join(look.twin for look in looks), first.tr)


def _look_at_run(listed: ListedSubject, run: BidsRun, settings: CohortSettings, space: Space) -> Look:
    subject = listed.subject
    header = read_whole_header(subject, run.image)
    volumes = header.shape[3]
    if run.mask is not None:
        _check_mask(subject, run.mask, run.image, header)
    space.place(subject, run.image, header)
    stated = sidecar_tr(subject, run.sidecars)
    tr = settings.tr.get(listed.site, header.tr if np.isnan(stated) else stated)
    regressors = load_regressors(subject, run.image, volumes, settings.bids.confounds)
    check_filter(subject, run.image, volumes, tr, settings.extraction)
    check_freedom(f"Subject {subject}, {run.image}", regressors, volumes, tr, settings.extraction)
    return Look(volumes if regressors.kept is None else len(regressors.kept), content_of(run.image), tr)


def _check_mask(subject: str, mask: str, file: str, header: ScanHeader) -> None:
    try:
        image = nib.load(mask)
    except (OSError, ValueError, ImageFileError) as error:
        raise UserError(
            f"Subject {subject}, {mask}: expected a brain mask, found a damaged file ({error}); fetch it again."
        ) from error
    refuse_other_grid(subject, mask, image, file, header.shape[:3], header.affine)
