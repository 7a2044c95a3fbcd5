"""Subjects and their files, found through path patterns before any job runs."""

import difflib
import hashlib
import os
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Literal, NamedTuple

from brainfed.cohort.phenotype import Participant, Row
from brainfed.cohort.settings import CohortSettings
from brainfed.cohort.sources._bids_tree import BidsRun
from brainfed.runtime import UserError

# Atlases that a config may name, with the paths of their files; `atlas_download` downloads them.

Absence = Literal[
    "",
    "excluded by diagnosis",
    "no series",
    "series file absent",
    "confounds file absent",
    "brain mask absent",
    "sidecar without content",
    "no FreeSurfer id",
    "stats folder absent",
]
FOLDER = "resources/atlases"
FETCH = "snakemake fetch_atlases --cores 1"
KNOWN_ATLASES = ("basc122", "cc200", "harvard-oxford", "aal")


class AtlasFiles(NamedTuple):
    """Atlas NIfTI and region table, None where absent."""

    parcellation: str | None
    labels: str | None


def atlas_files(settings: CohortSettings) -> AtlasFiles:
    """Files that the settings name, else those of the known atlas `atlas`."""
    if not by_name(settings):
        return AtlasFiles(settings.parcellation, settings.labels)
    path = f"{FOLDER}/{settings.atlas}"
    return AtlasFiles(f"{path}.nii.gz", settings.labels or f"{path}.tsv")


def by_name(settings: CohortSettings) -> bool:
    """Whether a cohort of images uses a known atlas and no parcellation of its own."""
    images = settings.source not in ("simulate", "timeseries")
    return images and settings.parcellation is None and settings.atlas in KNOWN_ATLASES


# Path patterns of a config, and remedies for absent files.

COMPARED = 2000
"""Names of a folder among which a similar one is looked for."""


def filled(name: str, key: str, pattern: str, parts: Mapping[str, str | None]) -> str:
    """A path pattern with its {file}, {subject} and {site}; a UserError if the braces name another slot."""
    try:
        return pattern.format_map(parts)
    except (KeyError, ValueError, IndexError) as error:
        raise UserError(
            f"Cohort {name!r}: expected {{file}}, {{subject}} or {{site}} in the `{key}` pattern, found {pattern!r} "
            f"({error}); fix the braces."
        ) from error


def filled_on_disk(
    name: str, key: str, pattern: str, parts: Mapping[str, str | None], exists: Callable[[str], bool]
) -> str:
    """As `filled`, with the ids in the decomposed form of Unicode (NFD) where only such a file `exists`."""
    path = filled(name, key, pattern, parts)
    split = {slot: part and unicodedata.normalize("NFD", part) for slot, part in parts.items()}
    if split == parts or exists(path):
        return path
    decomposed = filled(name, key, pattern, split)
    return decomposed if exists(decomposed) else path


def remedy_for(settings: CohortSettings, key: str, path: str | None = None) -> str:
    """Remedy for an absent file of a setting; where nothing is at its relative `path`, with the folder looked in."""
    fix = f"fix `{key}`"
    if path is not None and not Path(path).is_absolute():
        fix += f", or go to the folder where {path} starts, this is {Path.cwd()}"
    return f"run `{settings.fetch}` or {fix}" if settings.fetch else fix


def spelling(name: str) -> str:
    """A name without the case of its letters and the zeros before its numbers."""
    return re.sub(r"(?<!\d)0+(?=\d)", "", name.casefold())


def none_but(path: str) -> str:
    """`none`, or the file beside an absent one whose name differs in spelling alone, for an error message."""
    own = Path(path)
    names = [name for name in _names_in(own.parent) if name != own.name and spelling(name) == spelling(own.name)]
    return f"none but {names[0]}" if names else "none"


def _names_in(folder: Path) -> list[str]:
    """Names, ascending, of all that lies in a folder; none where it cannot be read."""
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []


def lying_near(path: str) -> str:
    """The part of a path that is absent, and a file of a similar name, in brackets; empty for a pattern."""
    if "*" in path:
        return ""
    missing = Path(path)
    while missing.name and not missing.parent.exists():
        missing = missing.parent
    names, own = _names_in(missing.parent)[:COMPARED], missing.stem.casefold()
    near = next((name for name in names if own and own in name.casefold()), None)
    similar = [near] if near else difflib.get_close_matches(missing.name, names, n=1)
    return f" ({missing} is not there{f', {missing.parent / similar[0]} is' if similar else ''})"


ANYWHERE = "/**/"


def files_below(pattern: str) -> dict[str, list[str]]:
    """Name -> paths, ascending, of all files in the folder of a pattern `folder/**/name` and below.

    Links to folders are followed, each folder is read once. Empty for other patterns.
    """
    top, anywhere, _ = pattern.partition(ANYWHERE)
    below: dict[str, list[str]] = {}
    seen: set[str] = set()
    for folder, folders, files in os.walk(top, followlinks=True) if anywhere else ():
        real = os.path.realpath(folder)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        for file in files:
            below.setdefault(file, []).append(f"{folder}/{file}")
    return {file: sorted(paths) for file, paths in below.items()}


def located(name: str, path: str, below: Mapping[str, Sequence[str]]) -> str:
    """The file that a filled pattern `folder/**/name` finds among `files_below` it; any other path as it is.

    A UserError names several files of one name.
    """
    top, anywhere, file = path.partition(ANYWHERE)
    paths = below.get(file, ()) if anywhere else ()
    if len(paths) > 1:
        raise UserError(
            f"Cohort {name!r}: expected one file {file} below {top}, found {len(paths)}, {paths[0]} and {paths[1]}; "
            "remove all but one."
        )
    return paths[0] if paths else path


EXCLUDED: Absence = "excluded by diagnosis"


@dataclass(frozen=True)
class ListedSubject:
    """One subject and its files.

    Attributes:
        series: path of the series, or FreeSurfer's id of the subject; None where the table names no file.
        confounds: path of the confound table, None where the cohort has none.
        absence: reason for the absence of series or measures: the diagnosis excludes the subject, the table names no
            file, or a named file is absent; empty: they exist or will be simulated.
        shard: name of the part with the subject's series, `shard-03`.
        labelled: whether the subject's target is known.
        runs: files of each run (source bids); `series` and `confounds` are those of the first.
        file: value of {file} in path patterns; None where the table has none.
        person: phenotype of the subject; None where a job simulates it.
        label: value of {subject} in path patterns: the id as the table has it.
    """

    subject: str
    site: str
    series: str | None
    confounds: str | None
    absence: Absence
    shard: str
    labelled: bool = True
    runs: tuple[BidsRun, ...] = ()
    file: str | None = None
    person: Participant | None = None
    label: str = ""

    @property
    def has_series(self) -> bool:
        """Whether the subject has a usable series."""
        return not self.absence


@dataclass(frozen=True)
class Listing:
    """A cohort listed from its tables and the file system, subjects in ascending order of id.

    `tables` are the paths of its phenotype tables. `unlisted` holds the series without a row in them: files that match
    the pattern, or, with source bids, subjects with images.
    """

    atlas: str
    tables: tuple[str, ...]
    parcellation: str | None
    labels: str | None
    subjects: tuple[ListedSubject, ...]
    unlisted: tuple[str, ...] = ()

    @property
    def labelled_sites(self) -> tuple[str, ...]:
        """Names, ascending, of the sites with a labelled subject, which are left out in turn."""
        return tuple(sorted({listed.site for listed in self.subjects if listed.labelled}))

    @property
    def motion_tables(self) -> dict[str, list[str]]:
        """Subject id -> fMRIPrep's tables of confounds with its motion, for subjects that have any."""
        tables = {listed.subject: [run.confounds for run in listed.runs if run.confounds] for listed in self.subjects}
        return {subject: files for subject, files in tables.items() if files}

    @property
    def shards(self) -> tuple[str, ...]:
        """Parts with at least one series, in ascending order."""
        return tuple(sorted({listed.shard for listed in self.subjects if listed.has_series}))

    @property
    def with_series(self) -> tuple[str, ...]:
        """Ids of the subjects with a series."""
        return tuple(listed.subject for listed in self.subjects if listed.has_series)

    @property
    def absences(self) -> dict[str, str]:
        """Subject id -> reason, for subjects without a usable series."""
        return {listed.subject: listed.absence for listed in self.subjects if listed.absence}

    def members(self, shard: str) -> tuple[ListedSubject, ...]:
        """Subjects of one part with a series."""
        return tuple(listed for listed in self.subjects if listed.shard == shard and listed.has_series)


def shard_name(subject: str, shards: int) -> str:
    """Part of a subject by the hash of its id, independent of other subjects."""
    number = int.from_bytes(hashlib.sha256(subject.encode()).digest()[:8], "big") % shards
    return f"shard-{number:02d}"


def list_row(
    row: Row,
    person: Participant,
    settings: CohortSettings,
    absence: Absence,
    series: str | None,
    confounds: str | None = None,
    runs: tuple[BidsRun, ...] = (),
) -> ListedSubject:
    """The subject of a row, with its files, or without them for the reason `absence`."""
    return ListedSubject(
        row.subject,
        person.site,
        series,
        confounds,
        EXCLUDED if person.excluded else absence,
        shard_name(row.subject, settings.shards),
        person.diagnosis is not None,
        runs,
        row.file(settings.columns),
        person,
        row.file_id,
    )


def all_excluded(name: str, subjects: int) -> UserError:
    """Mistake of codes that exclude all subjects."""
    return UserError(
        f"Cohort {name!r}: expected a subject whose diagnosis keeps it in the cohort, found {subjects} that "
        "codes.diagnosis excludes; fix the codes."
    )


def unlisted_files(pattern: str, named: Collection[str], below: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Names, ascending, of the files that match the pattern of series and are not among the paths `named`.

    Empty if the folder's name holds braces, the file's name holds none, or the folder does not exist. `below` are the
    `files_below` a pattern with `**`.
    """
    folder, name = os.path.split(pattern)
    parts = list(Formatter().parse(name))
    if "{" in folder or not any(field for _, field, _, _ in parts):
        return ()
    if ANYWHERE not in pattern and not Path(folder or ".").is_dir():
        return ()
    fits = re.compile("".join(re.escape(text) + ("" if field is None else ".+") for text, field, _, _ in parts))
    known = {Path(path).name for path in named}
    files = below if ANYWHERE in pattern else [entry.name for entry in os.scandir(folder or ".")]
    return tuple(sorted(file for file in files if file not in known and fits.fullmatch(file)))


NEEDED = {"nifti": ("phenotype", "series"), "timeseries": ("phenotype", "series", "regions"), "bids": ()}


def missing_inputs(name: str, settings: CohortSettings) -> Iterator[UserError]:
    """Mistakes of a cohort of images or series that lacks settings, or the files that these name."""
    files = atlas_files(settings)
    for key in NEEDED[settings.source]:
        if getattr(settings, key) is None:
            yield UserError(f"Cohort {name!r}: source {settings.source!r} needs `{key}`, found nothing; set it.")
    if settings.source != "timeseries" and files.parcellation is None:
        near = difflib.get_close_matches(settings.atlas.casefold(), KNOWN_ATLASES, n=1)
        yield UserError(
            f"Cohort {name!r}: source {settings.source!r} needs `parcellation`, or an `atlas` among "
            f"{', '.join(KNOWN_ATLASES)}, found neither (atlas {settings.atlas!r}); "
            f"{f'did you mean {near[0]!r}?' if near else 'set one.'}"
        )
    tables = [("phenotype", table) for table in settings.tables]
    for key, path in (*tables, ("parcellation", files.parcellation), ("labels", files.labels)):
        if path is not None and not Path(path).is_file():
            remedy = (
                f"run `{FETCH}` with this config or fix `atlas`"
                if key != "phenotype" and path != getattr(settings, key)
                else remedy_for(settings, key, path) + lying_near(path)
            )
            yield UserError(f"Cohort {name!r}: expected the {key} file {path}, found none; {remedy}.")
    yield from idle_confounds(name, settings)


def idle_confounds(name: str, settings: CohortSettings) -> Iterator[UserError]:
    """Mistake of a pattern of confounds beside data that are no images."""
    if settings.confounds is not None and settings.source in ("timeseries", "freesurfer"):
        yield UserError(
            f"Cohort {name!r}: confounds are regressed out of NIfTI images only, found source {settings.source!r}; "
            "remove `confounds`."
        )
