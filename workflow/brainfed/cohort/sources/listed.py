"""Subjects and their files, as the tables and the file system show them before any job runs."""

import hashlib
from dataclasses import dataclass
from typing import Literal

from brainfed.cohort.sources.scan_run import BidsRun
from brainfed.runtime.errors import UserError

Absence = Literal[
    "",
    "excluded by diagnosis",
    "no series",
    "series file absent",
    "confounds file absent",
    "brain mask absent",
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
        absence: why there is no series (or no measures) to use: the diagnosis excludes the subject, the table names no
            file, or a named file is absent; empty: there is one, or it will be simulated.
        shard: name of the part that holds the subject's series, `shard-03`.
        labelled: whether what is learnt is known of the subject.
        runs: the files of each run (source bids), of which `series` and `confounds` are the first's.
    """

    subject: str
    site: str
    series: str | None
    confounds: str | None
    absence: Absence
    shard: str
    labelled: bool = True
    runs: tuple[BidsRun, ...] = ()

    @property
    def has_series(self) -> bool:
        """Whether there is a series to use."""
        return not self.absence


@dataclass(frozen=True)
class Listing:
    """A cohort as its tables and the file system show it, subjects in ascending order of their id.

    `unlisted` names the series that no row of the tables names: files that fit their pattern, or, with source bids,
    subjects that have images.
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
        """Names, ascending, of the sites with a subject that can be scored: those that are left out in turn."""
        return tuple(sorted({listed.site for listed in self.subjects if listed.labelled}))

    @property
    def motion_tables(self) -> dict[str, list[str]]:
        """Subject id -> fMRIPrep's tables of confounds, which tell how much it moved, for those that have any."""
        tables = {one.subject: [run.confounds for run in one.runs if run.confounds] for one in self.subjects}
        return {subject: files for subject, files in tables.items() if files}

    @property
    def shards(self) -> tuple[str, ...]:
        """The parts that hold at least one series, in ascending order."""
        return tuple(sorted({listed.shard for listed in self.subjects if listed.has_series}))

    @property
    def with_series(self) -> tuple[str, ...]:
        """Ids of the subjects that have a series."""
        return tuple(listed.subject for listed in self.subjects if listed.has_series)

    @property
    def absences(self) -> dict[str, str]:
        """Subject id -> why it has no series to use, for those that have none."""
        return {listed.subject: listed.absence for listed in self.subjects if listed.absence}

    def members(self, shard: str) -> tuple[ListedSubject, ...]:
        """The subjects of one part that have a series."""
        return tuple(listed for listed in self.subjects if listed.shard == shard and listed.has_series)


def shard_name(subject: str, shards: int) -> str:
    """The part that a subject's id hashes to; other subjects do not matter."""
    number = int.from_bytes(hashlib.sha256(subject.encode()).digest()[:8], "big") % shards
    return f"shard-{number:02d}"


def nobody_wanted(name: str, subjects: int) -> UserError:
    """The mistake of codes that exclude everybody."""
    return UserError(
        f"Cohort {name!r}: expected a subject whose diagnosis keeps it in the cohort, found {subjects} that "
        "codes.diagnosis excludes; mend the codes."
    )
