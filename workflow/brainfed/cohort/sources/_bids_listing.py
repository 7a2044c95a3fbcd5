"""List a cohort of images in a BIDS derivative: rows of participants.tsv matched with folders by subject label."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from brainfed.cohort.phenotype import Row, cohort_rows, read_participant
from brainfed.cohort.settings import CohortSettings
from brainfed.cohort.sources._bids_tree import BidsRun, find_runs
from brainfed.cohort.sources._files import (
    EXCLUDED,
    Absence,
    ListedSubject,
    Listing,
    all_excluded,
    atlas_files,
    by_name,
    list_row,
    missing_inputs,
)
from brainfed.runtime import UserError, pass_over

TABLE = "participants.tsv"
LEVELS_ABOVE = 2
"""A derivative lies beside the raw data set, or in its folder derivatives/."""
WAYS_OUT = {
    "confounds file absent": ", set bids.confounds.strategy: none",
    "brain mask absent": ", set bids.brain_mask: false",
}
"""Reason for an absence -> the setting without which no file is needed."""


def list_bids(name: str, settings: CohortSettings) -> Listing:
    """The subjects of cohort `name` with source bids.

    Raises:
        UserError: a setting is empty, a file is absent, the table or the derivative is broken, no row has images, or
            a row's images, confounds or mask are absent and `on_invalid` is `error`.
    """
    where = f"Cohort {name!r}"
    folder = _checked_folder(name, where, settings)
    tables = settings.tables or (_participants_table(where, folder),)
    rows = cohort_rows(tables, settings)
    runs = find_runs(folder, settings.bids, where)
    subjects = tuple(_listed(row, settings, runs) for row in rows)
    _check_labels(where, rows, settings, runs)
    if all(listed.absence == EXCLUDED for listed in subjects):
        raise all_excluded(name, len(subjects))
    _check_files(where, folder, subjects, settings)
    # Files of rows that `rows` ignores are not strangers.
    everybody = cohort_rows(tables, replace(settings, rows={}), pass_over) if settings.rows else rows
    known = {_label(row, settings) for row in everybody}
    unlisted = tuple(f"sub-{label}" for label in runs if label not in known)
    _check_space(where, settings, runs)
    return Listing(settings.atlas, tables, *atlas_files(settings), subjects, unlisted)


def _check_space(where: str, settings: CohortSettings, runs: Mapping[str, Sequence[BidsRun]]) -> None:
    """Refuse images outside MNI space, by their names, for the known atlases, which lie in it."""
    if not by_name(settings):
        return
    for run in (run for own in runs.values() for run in own):
        space = next((part for part in run.name.split("_") if part.startswith("space-")), "")
        if not space.startswith("space-MNI"):
            raise UserError(
                f"{where}: expected images in MNI space for the atlas {settings.atlas!r}, found {space or 'no space-'} "
                f"in {run.name}; choose `bids.space`, or name a parcellation in that space under `parcellation`."
            )


def _checked_folder(name: str, where: str, settings: CohortSettings) -> Path:
    bids, extraction = settings.bids, settings.extraction
    if bids.derivatives is None:
        raise UserError(f"{where}: source 'bids' needs `bids.derivatives`, found nothing; set it.")
    for key in ("series", "confounds"):
        if getattr(settings, key) is not None:
            raise UserError(f"{where}: source 'bids' finds its files itself, found a pattern `{key}`; remove it.")
    for mistake in missing_inputs(name, settings):
        raise mistake
    if bids.runs == "concatenate" and not (extraction.standardise or extraction.detrend or extraction.high_pass):
        raise UserError(
            f"{where}: expected runs that are joined to share a baseline, found extraction.standardise, detrend and "
            "high_pass all off; turn one on, or set bids.runs to first or average."
        )
    folder = Path(bids.derivatives)
    if not folder.is_dir():
        raise UserError(
            f"{where}: expected fMRIPrep's output in the folder {folder}, found none; fix bids.derivatives."
        )
    return folder


def _participants_table(where: str, folder: Path) -> str:
    above = [folder, *list(folder.parents)[:LEVELS_ABOVE]]
    table = next((level / TABLE for level in above if (level / TABLE).is_file()), None)
    if table is None and not any(folder.glob("sub-*")):
        below = sorted(child for child in folder.glob("*/") if any(child.glob("sub-*")))
        remedy = f"set bids.derivatives to {below[0]}, which has some" if below else "fix bids.derivatives"
        raise UserError(f"{where}: expected folders sub-* of fMRIPrep's output in {folder}, found none; {remedy}.")
    if table is None:
        raise UserError(
            f"{where}: expected {TABLE} in {folder} or in the data set above it, found none; name it under `phenotype`."
        )
    return str(table)


def _label(row: Row, settings: CohortSettings) -> str | None:
    """Subject label of a row, as in file names: `sub-01` and `01` are equal."""
    named = row.file(settings.columns)
    return None if named is None else named.removeprefix("sub-")


def _listed(row: Row, settings: CohortSettings, runs: Mapping[str, Sequence[BidsRun]]) -> ListedSubject:
    label = _label(row, settings)
    own = tuple(runs.get(label, ())) if label is not None else ()
    series, confounds = (own[0].image, own[0].confounds) if own else (None, None)
    absence = _absence(label, own, settings)
    return list_row(row, read_participant(row, settings), settings, absence, series, confounds, own)


def _absence(label: str | None, runs: Sequence[BidsRun], settings: CohortSettings) -> Absence:
    if label is None:
        return "no series"
    if not runs:
        return "series file absent"
    return next((absence for absence, lacks in _lacking(settings).items() if any(map(lacks, runs))), "")


def _lacking(settings: CohortSettings) -> dict[Absence, Callable[[BidsRun], bool]]:
    """Reason for an absence -> whether a run is without the files."""
    strategy, masked = settings.bids.confounds.strategy, settings.bids.brain_mask
    described = strategy == "compcor"
    return {
        "series file absent": lambda run: run.image in run.links,
        "confounds file absent": lambda run: (
            strategy != "none" and (run.confounds is None or (described and run.components is None))
        ),
        "brain mask absent": lambda run: masked and run.mask is None,
        "sidecar without content": lambda run: any(path in run.links for path in run.sidecars),
    }


def _check_labels(
    where: str, rows: Sequence[Row], settings: CohortSettings, runs: Mapping[str, Sequence[BidsRun]]
) -> None:
    """Refuse tables of other subjects, and two rows of one subject."""
    first: dict[str, Row] = {}
    for row in rows:
        label = _label(row, settings)
        if label in first:
            raise UserError(
                f"{row.table}, line {row.line}: expected every subject once, found sub-{label} also in "
                f"{first[label].table}, line {first[label].line}; remove one of them."
            )
        if label is not None:
            first[label] = row
    if not set(first) & set(runs):
        named, present = ", ".join(list(first)[:3]), ", ".join(f"sub-{label}" for label in list(runs)[:3])
        raise UserError(
            f"{where}: expected images of the {len(rows)} subjects of {rows[0].table} ({named} ...), found only those "
            f"of {present} ...; fix the ids (are leading zeros lost?) or set columns.file to the column that has them."
        )


def _check_files(where: str, folder: Path, subjects: Sequence[ListedSubject], settings: CohortSettings) -> None:
    """Refuse absent files unless their subjects are to be dropped."""
    if settings.on_invalid == "drop" and any(listed.has_series for listed in subjects):
        return
    for absence, (what, pattern) in wanted_files(settings).items():
        without = [listed for listed in subjects if listed.absence == absence]
        if without:
            first, lacking = without[0].subject, _of(without[0], absence, settings)
            raise UserError(
                f"{where}: expected {what} ({pattern}) of subject {first} in {folder}, found none{lacking} "
                f"({len(without)} of {len(subjects)} subjects lack them); run fMRIPrep for them"
                f"{WAYS_OUT.get(absence, '')}, or set on_invalid: drop to leave such subjects out."
            )


def wanted_files(settings: CohortSettings) -> dict[Absence, tuple[str, str]]:
    """Reason for an absence -> what a derivative lacks, and the pattern of its name."""
    beside, ending = (" and its json", ", .json") if settings.bids.confounds.strategy == "compcor" else ("", "")
    return {
        "series file absent": ("images that bids selects", "*_bold.nii.gz"),
        "confounds file absent": (
            f"a table of confounds{beside} for every run",
            f"*_desc-confounds_timeseries.tsv{ending}",
        ),
        "brain mask absent": ("a brain mask for every run", "*_desc-brain_mask.nii.gz"),
        "sidecar without content": ("the content of every sidecar", "*_bold.json"),
    }


def _of(listed: ListedSubject, absence: Absence, settings: CohortSettings) -> str:
    """The first run that lacks a file, and the link without content in its place."""
    lacking = next(filter(_lacking(settings)[absence], listed.runs), None)
    if lacking is None:
        return ""
    link = f", but a link without content ({Path(lacking.links[0]).name}; fetch it)" if lacking.links else ""
    return f" for {lacking.name}{link}"
