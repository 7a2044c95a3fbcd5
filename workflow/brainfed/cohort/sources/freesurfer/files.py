"""Paths of FreeSurfer's measures, known before any job runs, and the missing codes that its files hold."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from brainfed.cohort.phenotype.text import read_table_text
from brainfed.cohort.settings.freesurfer import FreeSurferSettings
from brainfed.runtime.errors import UserError

HEMISPHERES = ("lh", "rh")
EDGE = r"[\s,;|\"']"
"""What stands on either side of a cell."""


def missing_measures(where: str, settings: FreeSurferSettings, remedy: str) -> Iterator[UserError]:
    """Mistakes of a cohort of measures that lacks tables or a SUBJECTS_DIR.

    Args:
        where: name of the cohort in the message.
        settings: settings of the cohort.
        remedy: remedy of an absent file.
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
    """Names of the stats files to read for every subject of a SUBJECTS_DIR."""
    cortical = [f"{hemisphere}.{name}.stats" for name in settings.parcellations for hemisphere in HEMISPHERES]
    return [*(["aseg.stats"] if "volume" in settings.measures or settings.normalise != "none" else []), *cortical]


def stats_folder(settings: FreeSurferSettings, identity: str) -> Path:
    """Folder of the stats files of a subject of a SUBJECTS_DIR."""
    return Path(str(settings.subjects_dir)) / identity / "stats"


def has_stats(settings: FreeSurferSettings, identity: str) -> bool:
    """Whether a SUBJECTS_DIR is set and has stats files of a subject."""
    return settings.subjects_dir is not None and stats_folder(settings, identity).is_dir()


def measure_files(settings: FreeSurferSettings, identities: Sequence[str]) -> list[str]:
    """Files to read: the tables, or the existing stats files of subjects with these ids."""
    if settings.subjects_dir is None:
        return list(settings.tables)
    paths = (stats_folder(settings, identity) / name for identity in identities for name in stats_names(settings))
    return [str(path) for path in paths if path.is_file()]


def codes_held(settings: FreeSurferSettings, identities: Sequence[str], codes: Sequence[str]) -> list[str]:
    """The codes, in order, that a cell of these subjects' files may hold: another one changes nothing that a job reads.

    All of them where a file cannot be read.
    """
    if not codes:
        return []
    read = _stats_text if settings.subjects_dir is not None else _table_text
    sought = {code: re.compile(rf"(?:^|{EDGE}){re.escape(code)}(?:$|{EDGE})") for code in codes}
    try:
        for file in measure_files(settings, identities):
            # A subject has its stats files; few files hold a code, and a look for its bytes is fast.
            text = read(file, sought)
            sought = {code: cell for code, cell in sought.items() if not cell.search(text)}
    except (OSError, UserError):
        return list(codes)
    return [code for code in codes if code not in sought]


def _table_text(file: str, _: Iterable[str]) -> str:
    return "".join(read_table_text(file).lines)


def _stats_text(file: str, codes: Iterable[str]) -> str:
    """Text of a stats file; empty where it holds none of the codes."""
    content = Path(file).read_bytes()
    return content.decode(errors="replace") if any(code.encode() in content for code in codes) else ""
