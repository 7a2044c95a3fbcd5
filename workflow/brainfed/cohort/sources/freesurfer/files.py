"""Where FreeSurfer's measures lie, known before any job runs: paths alone, no file is opened."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from brainfed.cohort.settings.freesurfer import FreeSurferSettings
from brainfed.runtime.errors import UserError

HEMISPHERES = ("lh", "rh")


def unmet_measures(where: str, settings: FreeSurferSettings, remedy: str) -> Iterator[UserError]:
    """What a cohort of measures lacks: tables or a SUBJECTS_DIR.

    Args:
        where: how the message names the cohort.
        settings: of the cohort.
        remedy: what to do about an absent file.
    """
    if not settings.tables and settings.subjects_dir is None:
        yield UserError(
            f"{where}: source 'freesurfer' needs `freesurfer.tables` or `freesurfer.subjects_dir`, found neither; set "
            "one."
        )
    for table in settings.tables:
        if not Path(table).is_file():
            yield UserError(f"{where}: expected the FreeSurfer table {table}, found none; {remedy}.")
    if settings.subjects_dir is not None and not Path(settings.subjects_dir).is_dir():
        yield UserError(f"{where}: expected the SUBJECTS_DIR {settings.subjects_dir}, found no folder; {remedy}.")


def stats_names(settings: FreeSurferSettings) -> list[str]:
    """Names of the stats files that are read of every subject of a SUBJECTS_DIR."""
    cortical = [f"{hemisphere}.{name}.stats" for name in settings.parcellations for hemisphere in HEMISPHERES]
    return [*(["aseg.stats"] if "volume" in settings.measures or settings.normalise != "none" else []), *cortical]


def stats_folder(settings: FreeSurferSettings, identity: str) -> Path:
    """Where the stats files of a subject of a SUBJECTS_DIR lie."""
    return Path(str(settings.subjects_dir)) / identity / "stats"


def measure_files(settings: FreeSurferSettings, identities: Sequence[str]) -> list[str]:
    """Every file that is read: the tables, or those of the stats files that exist of subjects with these ids."""
    if settings.subjects_dir is None:
        return list(settings.tables)
    paths = (stats_folder(settings, identity) / name for identity in identities for name in stats_names(settings))
    return [str(path) for path in paths if path.is_file()]
