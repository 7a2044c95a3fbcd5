"""Subjects and their files, listed from tables and the file system before any job runs."""

import hashlib
from dataclasses import dataclass
from typing import Literal

from brainfed.cohort.phenotype.participant import Participant
from brainfed.cohort.sources.scan_run import BidsRun
from brainfed.runtime.errors import UserError

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

    `unlisted` holds the series without a row in the tables: files that match the pattern, or, with source bids,
    subjects with images.
    """

    cohort: str
    atlas: str
    phenotype: str | tuple[str, ...]
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
        tables = {one.subject: [run.confounds for run in one.runs if run.confounds] for one in self.subjects}
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


def all_excluded(name: str, subjects: int) -> UserError:
    """Mistake of codes that exclude all subjects."""
    return UserError(
        f"Cohort {name!r}: expected a subject whose diagnosis keeps it in the cohort, found {subjects} that "
        "codes.diagnosis excludes; fix the codes."
    )
