"""Images by their headers: dimensions, space, repetition time, length; their confounds; of some, their voxels.

A cohort has one image a subject (nifti), or fMRIPrep's runs with brain masks, sidecars and confounds (bids).
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest
from operator import itemgetter
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.checking._files import list_table, read_table
from brainfed.checking._finding import Finding, attempt, boundary, collected, failures, named, note, place_of
from brainfed.checking._people import Checked, Content, Look, concluded, look_at_all, silent_regions
from brainfed.cohort.quality import RULES, active_rules, measure_scans
from brainfed.cohort.settings import CohortSettings
from brainfed.cohort.sources import BidsRun, ListedSubject, atlas_files
from brainfed.imaging.extraction import (
    COSINES,
    ScanFiles,
    SubjectRuns,
    TooShortError,
    check_cleaning,
    check_together,
    exempt_libraries,
    extract,
    extract_subject,
    prepare_cleaning,
    read_confounds,
)
from brainfed.imaging.scans import (
    Atlas,
    AtlasGrid,
    ProbabilisticAtlas,
    ScanHeader,
    content_of,
    grid_of,
    gzip_trailer,
    load_atlas,
    read_brain,
    read_header,
    read_scan,
    same_grid,
    voxels_in_view,
)
from brainfed.imaging.series import RegionSeries, check_length, check_series, coverage_table, quality_row
from brainfed.runtime import Refuse, UserError

MOST_VOXELS = 5 * 10**8
"""Voxels, in all volumes together, that a check reads of a cohort unasked: about ten usual scans, half a minute."""
FROM_HEADERS = {"mean_fd", "min_volumes", "min_kept_seconds"}
"""Rules of exclusion that need no voxel."""
DIFFERENT_TR = 0.01
"""Two repetition times differ if one is longer by more than this fraction."""


def check_images(name: str, settings: CohortSettings, *, every_scan: bool) -> Checked:
    """A cohort of images and a parcellation."""
    place, of_atlas = place_of(name, "images"), place_of(name, "parcellation")
    files = atlas_files(settings)
    mistakes: list[Finding] = []
    atlas = None
    if files.parcellation is not None and all(Path(path).is_file() for path in files if path is not None):
        with failures(of_atlas, mistakes, f"Parcellation {files.parcellation}, region table {files.labels}"):
            atlas = load_atlas(settings.atlas, files.parcellation, files.labels)
    regions = len(atlas.regions) if atlas else 0
    bids = settings.source == "bids"
    listing = list_table(name, settings) if bids else read_table(name, settings)
    if isinstance(listing, list):
        return Checked((*mistakes, *listing), (), (), regions)
    table = listing[1] if isinstance(listing, tuple) else listing
    space = Space(atlas)
    look = look_at_runs if bids else look_at_image
    content = look_at_all(table.listed, lambda listed, refuse: look(listed, settings, space, refuse))
    if atlas is not None:
        read_scans(content, table.listed, settings, atlas, every=every_scan)
    content.notes += collected(place, remarks, content.looks, table.listed, settings, space)
    checked = concluded(name, settings, place, table, content, regions)
    return replace(checked, findings=(*mistakes, *checked.findings))


@dataclass
class Space:
    """Positions of images relative to the atlas; every grid is compared once.

    Attributes:
        atlas: None where it cannot be read.
        shares: grid -> fraction of the regions' voxels in the field of view.
        resampled: subjects on another grid than the atlas.
        part: subject -> fraction, for those that see less than all of the atlas.
    """

    atlas: Atlas | ProbabilisticAtlas | None
    shares: dict[bytes, float] = field(default_factory=dict)
    resampled: list[str] = field(default_factory=list)
    part: dict[str, float] = field(default_factory=dict)

    @cached_property
    def placed(self) -> AtlasGrid | None:
        """Where the atlas lies."""
        return None if self.atlas is None else grid_of(self.atlas)

    def place(self, subject: str, file: str, header: ScanHeader) -> None:
        """Compare one image's grid with the atlas; a UserError if they share no voxel."""
        if self.atlas is None or self.placed is None:
            return
        grid = header.shape[:3]
        key = header.affine.tobytes() + bytes(str(grid), "ascii")
        if key not in self.shares:
            in_view = voxels_in_view(
                subject, file, grid, header.affine, self.atlas.name, self.placed.affine, self.placed.voxels
            )[1]
            self.shares[key] = float(in_view.mean())
        if self.shares[key] < 1:
            self.part[subject] = self.shares[key]
        if not same_grid(grid, header.affine, self.placed.shape, self.placed.affine):
            self.resampled.append(subject)


def look_at_image(listed: ListedSubject, settings: CohortSettings, space: Space, refuse: Refuse) -> Look:
    """The look at the header of one subject's image; mistakes beyond the header go to `refuse`.

    Raises:
        UserError: the header cannot be read.
    """
    subject, file = listed.subject, str(listed.series)
    header = read_whole_header(subject, file)
    volumes = header.shape[3]
    names: list[str] = []

    def clean() -> None:
        values = None
        if listed.confounds is not None:
            confounds = read_confounds(subject, listed.confounds, settings.confound_columns, volumes)
            names.extend(confounds.names)
            values = confounds.values
        tr = settings.tr.get(listed.site, header.tr)
        check_cleaning(f"Subject {subject}, {file}", volumes, tr, settings.extraction, values)

    attempt(
        f"Subject {subject}, {file}",
        refuse,
        clean,
        lambda: space.place(subject, file, header),
        lambda: check_length(subject, volumes, settings.min_timepoints),
    )
    cosines = any(name.startswith(COSINES) for name in names)
    return Look(volumes, content_of(file), header.tr, cosines=cosines, voxels=math.prod(header.shape))


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
    attempt(
        f"Subject {listed.subject}",
        refuse,
        lambda: check_together(listed.subject, [(run.image, look.tr) for run, look in looks]),
        lambda: check_length(listed.subject, kept, settings.min_timepoints),
    )
    return Look(
        kept,
        " ".join(look.content for _, look in looks),
        looks[0][1].tr,
        header_tr=next((look.header_tr for _, look in looks if not np.isnan(look.header_tr)), float("nan")),
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


def read_scans(
    content: Content,
    listed: Iterable[ListedSubject],
    settings: CohortSettings,
    atlas: Atlas | ProbabilisticAtlas,
    *,
    every: bool,
) -> None:
    """Extract the region series of subjects without mistakes as the jobs do, those of all sites in turn.

    Looks get their measures; those at scans that cannot be used leave for the mistakes. `every` goes on beyond
    `MOST_VOXELS`.
    """
    rows: list[dict[str, object]] = []
    coverage: dict[str, NDArray[np.float64]] = {}
    mistakes: list[tuple[str, UserError]] = []
    left = math.inf if every else MOST_VOXELS
    exempt_libraries()
    for each in _in_turn([each for each in listed if each.subject in content.looks]):
        left -= content.looks[each.subject].voxels
        if left < 0:
            break
        wrong: list[UserError] = []
        with boundary(f"Subject {each.subject}, {each.series}", wrong.append):
            extracted = _extracted(each, settings, atlas)
            check_series(each.subject, extracted.series, settings.min_timepoints)
        mistakes += [(each.subject, error) for error in wrong]
        if not wrong:
            rows.append(quality_row(each.subject, extracted, ""))
            coverage[each.subject] = extracted.coverage
    content.wrong += sorted(mistakes, key=itemgetter(0))
    for subject, _ in mistakes:
        content.looks.pop(subject, None)
    if rows:
        table = coverage_table(coverage, atlas.regions)
        measured = measure_scans(pd.Series(sorted(coverage)), pd.DataFrame(rows), table, settings.min_coverage)
        of_rules = [rule.measure for rule in RULES.values()]
        numbers = measured[of_rules].to_numpy(np.float64).tolist()
        for subject, values in zip(measured["subject"], numbers, strict=True):
            content.looks[subject] = replace(content.looks[subject], measures=dict(zip(of_rules, values, strict=True)))


def _in_turn(listed: Iterable[ListedSubject]) -> Iterator[ListedSubject]:
    """The first subject of every site, then the second: a fault of one site's scans is met early."""
    of_site: dict[str, list[ListedSubject]] = {}
    for subject in listed:
        of_site.setdefault(subject.site, []).append(subject)
    return (subject for turn in zip_longest(*of_site.values()) for subject in turn if subject is not None)


def _extracted(listed: ListedSubject, settings: CohortSettings, atlas: Atlas | ProbabilisticAtlas) -> RegionSeries:
    tr = settings.tr.get(listed.site)
    if listed.runs:
        return extract_subject(listed.subject, SubjectRuns(listed.runs, tr), atlas, settings)
    files = ScanFiles(str(listed.series), listed.confounds, tr)
    return extract(listed.subject, files, atlas, settings.extraction, settings.confound_columns)


def read_whole_header(subject: str, file: str) -> ScanHeader:
    """The header of a 4D image whose file is as long as the header says.

    Raises:
        UserError: the file is absent, cut off or no NIfTI, the image is not 4D, or the affine is singular.
    """
    header = read_header(subject, file)
    # A gzip file ends with the length of its content.
    if header.voxels.endswith(".gz") and gzip_trailer(header.voxels)[1] != header.size % 2**32:
        read_scan(subject, file)
    return header


def _unread(unread: int, total: int, settings: CohortSettings) -> str:
    """What the headers alone do not tell of some images."""
    rules = [f"`exclude.{rule}`" for rule in active_rules(settings.exclude) if rule not in FROM_HEADERS]
    if settings.constant_regions != "impute_zero":
        rules.insert(0, f"`constant_regions: {settings.constant_regions}`")
    judged = f", and {', '.join(rules)} {'is' if len(rules) == 1 else 'are'} not judged" if rules else ""
    return (
        f"the voxels of {unread} of {total} subjects were not read: their regions without a signal are not known "
        f"before the run{judged}; `brainfed check CONFIG --scans` reads all, in the time that one core needs to "
        "extract them."
    )


def remarks(
    looks: Mapping[str, Look], listed: Sequence[ListedSubject], settings: CohortSettings, space: Space
) -> Iterator[Finding]:
    """Notes on the images together: unread voxels, repetition times, two high-passes, other grids, a part of the brain,
    regions without a signal.
    """
    unread = tuple(subject for subject, look in looks.items() if look.measures is None)
    if unread and space.atlas is not None:
        yield note(_unread(len(unread), len(looks), settings), unread)
    times_of: dict[str, set[float]] = {row.site: set() for row in listed if row.subject in looks}
    for row in listed:
        if row.subject in looks and looks[row.subject].tr > 0:
            times_of[row.site].add(round(looks[row.subject].tr, 3))
    for name, known in sorted(times_of.items()):
        times, given = sorted(known), settings.tr.get(name)
        if len(times) > 1 and times[-1] > times[0] * (1 + DIFFERENT_TR):
            yield note(
                f"site {name}: expected one repetition time, found {', '.join(f'{time:g}' for time in times)} s in the "
                "headers; check that it is one site.",
            )
        if given is not None and any(abs(time / given - 1) > DIFFERENT_TR for time in times):
            yield note(
                f"site {name}: tr is {given:g} s in the config, which overrules {times[0]:g} s in the headers; fix it "
                "if the headers are right.",
            )
    contradicted = {subject: look for subject, look in looks.items() if not np.isnan(look.header_tr)}
    if contradicted:
        first, look = next(iter(contradicted.items()))
        yield note(
            f"{len(contradicted)} of {len(looks)} subjects have a repetition time in their sidecar that the image "
            f"header contradicts, the first is {first}: {look.tr:g} s, which is used, against {look.header_tr:g} s in "
            "the header; fix the wrong one, or set `tr` for its site.",
            tuple(contradicted),
        )
    twice = tuple(subject for subject, look in looks.items() if look.cosines and settings.extraction.high_pass)
    if twice:
        yield note(
            f"{len(twice)} of {len(looks)} subjects have two high-passes: cosines are among the confounds, and "
            f"extraction.high_pass is {settings.extraction.high_pass:g} Hz; set extraction.high_pass: null, or leave "
            "the cosines out.",
            twice,
        )
    if space.resampled:
        yield note(
            f"{len(space.resampled)} of {len(looks)} images have another grid than the parcellation, whose labels are "
            f"laid over each by the nearest voxel: {named(space.resampled)}.",
            tuple(space.resampled),
        )
    low = {subject: share for subject, share in space.part.items() if share < settings.min_coverage}
    if low:
        yield note(
            f"{len(low)} of {len(looks)} images show less than {100 * settings.min_coverage:g} % of the parcellation "
            f"(the least {100 * min(low.values()):.0f} %): {named(list(low))}; check their affines.",
            tuple(low),
        )
    absent = space.atlas.without_voxel if space.atlas else ()
    if space.atlas and absent:
        yield note(
            f"{len(absent)} of {len(space.atlas.regions)} regions of the region table have no voxel in the "
            f"parcellation and are empty in every subject: {named(absent)}; take their rows out of the table.",
        )
    yield from silent_regions(looks, len(space.atlas.regions) if space.atlas else 0, settings)
    volumes = np.array([look.timepoints for look in looks.values()])
    if len(volumes) and volumes.max() > 2 * volumes.min():
        yield note(
            f"images have {volumes.min()} to {volumes.max()} volumes; correlations of short ones are noisier.",
        )
