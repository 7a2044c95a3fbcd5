"""Who is in a cohort and where each series lies, known before any job runs (no checkpoint needed).

Only the csv module: the Snakefile imports this in every job.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from brainfed.cohort.apportion import apportion
from brainfed.cohort.participant import read_participant
from brainfed.cohort.phenotype_table import Row, read_phenotype_table
from brainfed.cohort.settings import CohortSettings
from brainfed.runtime.errors import UserError

Absence = Literal["", "no series", "series file absent", "confounds file absent"]


@dataclass(frozen=True)
class ListedSubject:
    """One subject and its files.

    Attributes:
        series: path of the series, None where the table names no file.
        confounds: path of the confound table, None where the cohort has none.
        absence: why there is no series to use: the table names no file, or a named file is absent; empty: there is
            one, or it will be simulated.
        shard: name of the part that holds the subject's series, `shard-03`.
    """

    subject: str
    site: str
    series: str | None
    confounds: str | None
    absence: Absence
    shard: str

    @property
    def has_series(self) -> bool:
        """Whether there is a series to use."""
        return not self.absence


@dataclass(frozen=True)
class Listing:
    """A cohort as its table and the file system show it, subjects in ascending order of their id."""

    cohort: str
    atlas: str
    phenotype: str
    parcellation: str | None
    labels: str | None
    subjects: tuple[ListedSubject, ...]

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


def list_cohort(name: str, settings: CohortSettings, root: str = "results") -> Listing:
    """List cohort `name`; results lie under `root`.

    Raises:
        UserError: a setting that the source needs is empty, the phenotype table is absent or broken, no series
            exists at all, or a series or confound file is absent and `on_invalid` is `error`.
    """
    if settings.source == "simulate":
        return _list_simulated(name, settings, f"{root}/{name}/simulated")
    needed = ["phenotype", "series", *(("parcellation", "labels") if settings.source == "nifti" else ("regions",))]
    for key in needed:
        if getattr(settings, key) is None:
            raise UserError(f"Cohort {name!r}: source {settings.source!r} needs `{key}`, found nothing; set it.")
    for key in ("phenotype", "parcellation", "labels"):
        path = getattr(settings, key)
        if path is not None and not Path(path).is_file():
            raise UserError(f"Cohort {name!r}: expected the {key} file {path}, found none; {_remedy(settings, key)}.")
    if settings.confounds is not None and settings.source != "nifti":
        raise UserError(
            f"Cohort {name!r}: confounds are regressed out of NIfTI images only, found source {settings.source!r}; "
            "remove `confounds`."
        )
    rows = read_phenotype_table(str(settings.phenotype), settings.columns, settings.missing)
    subjects = tuple(_listed(name, row, settings) for row in rows)
    _check_files(name, subjects, settings)
    return Listing(name, settings.atlas, str(settings.phenotype), settings.parcellation, settings.labels, subjects)


def simulated_subjects(settings: CohortSettings) -> dict[str, str]:
    """Subject id -> site of a simulated cohort; one more subject leaves the others where they are."""
    simulate = settings.simulate
    sites = apportion({name: site.share for name, site in simulate.sites.items()}, simulate.subjects)
    return {f"sub-{number:04d}": site for number, site in enumerate(sites, start=1)}


def _list_simulated(name: str, settings: CohortSettings, folder: str) -> Listing:
    subjects = tuple(
        ListedSubject(subject, site, f"{folder}/{subject}_bold.nii.gz", None, "", shard_name(subject, settings.shards))
        for subject, site in simulated_subjects(settings).items()
    )
    return Listing(
        name, settings.atlas, f"{folder}/participants.tsv", f"{folder}/atlas.nii.gz", f"{folder}/atlas.tsv", subjects
    )


def _listed(name: str, row: Row, settings: CohortSettings) -> ListedSubject:
    columns = settings.columns
    site = read_participant(str(settings.phenotype), row, columns, settings.codes).site
    file = row.subject if columns.file is None else row.cells[columns.file]
    parts = {"file": file, "subject": row.subject, "site": site}
    series = None if file is None else _fill(name, "series", str(settings.series), parts)
    confounds = None
    if file is not None and settings.confounds is not None:
        confounds = _fill(name, "confounds", settings.confounds, parts)
    shard = shard_name(row.subject, settings.shards)
    return ListedSubject(row.subject, site, series, confounds, _absence(series, confounds), shard)


def _absence(series: str | None, confounds: str | None) -> Absence:
    if series is None:
        return "no series"
    if not Path(series).is_file():
        return "series file absent"
    if confounds is not None and not Path(confounds).is_file():
        return "confounds file absent"
    return ""


def _check_files(name: str, subjects: Sequence[ListedSubject], settings: CohortSettings) -> None:
    """Refuse absent files, all of them or, unless their subjects are to be dropped, any."""
    where = f"Cohort {name!r}"
    named = [listed for listed in subjects if listed.series is not None]
    without_series = [listed for listed in named if listed.absence == "series file absent"]
    if len(without_series) == len(named):
        raise UserError(
            f"{where}: expected the series of {len(subjects)} subjects at {settings.series}, found none; "
            f"{_remedy(settings, 'series')}."
        )
    without_confounds = [listed for listed in named if listed.absence == "confounds file absent"]
    if len(without_series) + len(without_confounds) == len(named):
        raise UserError(f"{where}: expected confound tables at {settings.confounds}, found none; mend `confounds`.")
    for key, absent in (("series", without_series), ("confounds", without_confounds)):
        if absent and settings.on_invalid == "error":
            first = absent[0]
            raise UserError(
                f"{where}: expected the {key} file {getattr(first, key)} of subject {first.subject}, found none "
                f"({len(absent)} of {len(named)} are absent); {_remedy(settings, key)}, or set on_invalid: drop to "
                "leave such subjects out."
            )


def _fill(name: str, key: str, pattern: str, parts: dict[str, str | None]) -> str:
    try:
        return pattern.format_map(parts)
    except (KeyError, ValueError, IndexError) as error:
        raise UserError(
            f"Cohort {name!r}: expected {{file}}, {{subject}} or {{site}} in the `{key}` pattern, found {pattern!r} "
            f"({error}); mend the braces."
        ) from error


def _remedy(settings: CohortSettings, key: str) -> str:
    return f"run `{settings.fetch}` or mend `{key}`" if settings.fetch else f"mend `{key}`"
