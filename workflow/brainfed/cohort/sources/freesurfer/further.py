"""FreeSurfer's measures as a further view of subjects with scans: their ids, known before any job runs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.settings.freesurfer import FreeSurferSettings
from brainfed.cohort.sources.freesurfer.files import has_stats, missing_measures, stats_folder
from brainfed.cohort.sources.listed import ListedSubject
from brainfed.cohort.sources.path_patterns import filled_on_disk, remedy_for
from brainfed.runtime.errors import UserError


def further_measures(settings: CohortSettings) -> bool:
    """Whether a cohort of scans has FreeSurfer's measures too."""
    return settings.source != "freesurfer" and "morphometry" in settings.kinds


def further_source(name: str, settings: CohortSettings, root: str = "results") -> FreeSurferSettings:
    """Settings of the measures beside scans; a simulated table lies under `root`."""
    if not settings.simulates_thickness:
        return settings.freesurfer
    return replace(settings.freesurfer, tables=(f"{root}/{name}/simulated/thickness.tsv",), id="{subject}")


def further_identities(name: str, subjects: Sequence[ListedSubject], settings: CohortSettings) -> dict[str, str]:
    """Subject -> FreeSurfer's id, for subjects with a scan whose table row gives one.

    Raises:
        UserError: `freesurfer.id` has wrong braces.
    """
    source = further_source(name, settings)
    pattern, has = source.id, partial(has_stats, source)
    return {
        one.subject: filled_on_disk(
            name,
            "freesurfer.id",
            pattern,
            {"file": one.file, "subject": one.label or one.subject, "site": one.site},
            has,
        )
        for one in subjects
        if one.has_series and (one.file is not None or "{file" not in pattern)
    }


def unusable_measures(name: str, subjects: Sequence[ListedSubject], settings: CohortSettings) -> Iterator[UserError]:
    """Mistakes of measures beside scans: absent files, wrong braces, and ids that no folder of a SUBJECTS_DIR has.

    Ids in tables are compared when these are read.
    """
    if not further_measures(settings) or settings.simulates_thickness:
        return
    where, source = f"Cohort {name!r}", settings.freesurfer
    absent = list(missing_measures(where, source, remedy_for(settings, "freesurfer")))
    yield from absent
    try:
        identities = further_identities(name, subjects, settings)
    except UserError as error:
        yield error
        return
    if absent or source.subjects_dir is None:
        return
    folders = [stats_folder(source, identity) for identity in identities.values()]
    if not any(folder.is_dir() for folder in folders):
        first = f"{folders[0]} of subject {next(iter(identities))}" if folders else "of a subject with a FreeSurfer id"
        yield UserError(
            f"{where}: expected stats folders of its subjects in {source.subjects_dir}, found none of {len(folders)} "
            f"(the first is {first}); fix `freesurfer.id` or `columns.file`."
        )
