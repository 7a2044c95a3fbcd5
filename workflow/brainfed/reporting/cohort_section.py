"""The section of the page on one cohort."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from brainfed.cohort.classes import ClassWords
from brainfed.cohort.settings.cohort import FlagSettings
from brainfed.reporting.outline import CohortOutline
from brainfed.reporting.people import Attrition, attrition, read_cohort, twin_groups, used
from brainfed.reporting.pictures import Picture, read_pictures
from brainfed.reporting.tables.confounds import confound_sentences, find_confounds
from brainfed.reporting.tables.exchanges import Crossing, read_crossings
from brainfed.reporting.tables.homophily import SiteRow, site_rows
from brainfed.reporting.tables.subjects import Characteristic, Ways, characteristics, read_ways
from brainfed.reporting.text.first_screen import quality_words
from brainfed.runtime.artefacts import read_table
from brainfed.runtime.provenance import file_digest

SOURCE_TITLES = {"simulate": "simulated cohort"}
"""Titles of sources; the others are `cohort`."""


@dataclass(frozen=True)
class IssueCount:
    """One kind of issue: the number of affected subjects, the action, and their ids (only if ids may be shown).

    `details` concern whole sites or groups and contain no subject.
    """

    kind: str
    count: int
    action: str
    subjects: tuple[str, ...]
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class CohortSection:
    """One cohort, counted.

    Attributes:
        name: name in the config.
        title: `simulated cohort demo`.
        simulated: whether its data are simulated.
        atlas: name of the parcellation.
        atlas_digest: SHA-256 of its image; empty if only series are known.
        attrition: exclusions from the table to the analysed subjects.
        words: names of the classes.
        labelled: analysed subjects of each class, by code.
        unlabelled: number of analysed subjects that are never scored.
        sites: number of sites of the analysed subjects.
        characteristics: rows of Table 1.
        ways: the subjects that issues name, from scan to score; nobody where ids may not be shown.
        twins: number of groups of subjects with identical series.
        issues: counts by kind.
        silent: analysed subjects with regions without signal.
        confounds: sentences on confounds of the diagnosis, one paragraph.
        quality: sentences on motion in connectivity, odd scans and missing measures.
        excluded: (subject, reason); empty if ids may not be shown.
        subjects_digest: SHA-256 of the analysed ids, one a line.
        series_digest: SHA-256 of their series' checksums.
        connectivity: the summary of the group differences, in connections or measures.
        kind: `connectivity`, `morphometry` (FreeSurfer measures) or `graphs`.
        by_labels: titles of variants with graphs that depend on training labels, in the neighbour search or the
            selection of features.
        embedded_by_labels: whether an embedding depends on them.
        site_rows: accuracy of sites predicted from the embeddings of the graphs.
        crossings: crossings before any method.
        pictures: pictures by name.
    """

    name: str
    title: str
    simulated: bool
    atlas: str
    atlas_digest: str
    attrition: Attrition
    words: ClassWords
    labelled: tuple[int, ...]
    unlabelled: int
    sites: int
    characteristics: list[Characteristic]
    ways: Ways
    twins: int
    issues: tuple[IssueCount, ...]
    silent: int
    confounds: list[str]
    quality: list[str]
    excluded: tuple[tuple[str, str], ...]
    subjects_digest: str
    series_digest: str
    connectivity: dict[str, Any]
    kind: str
    by_labels: list[str]
    embedded_by_labels: bool
    site_rows: list[SiteRow]
    crossings: tuple[Crossing, ...]
    pictures: dict[str, Picture]

    @property
    def morphometry(self) -> bool:
        """Whether the features are FreeSurfer measures."""
        return self.kind == "morphometry"

    @property
    def graphs(self) -> bool:
        """Whether the samples are public graphs, as molecules, and nobody is a person."""
        return self.kind == "graphs"

    @property
    def data(self) -> str:
        """Name of a subject's data."""
        return {"morphometry": "measures", "graphs": "graphs"}.get(self.kind, "series")

    @property
    def subjects(self) -> str:
        """What the cohort consists of."""
        return self.words.subjects

    @property
    def site(self) -> str:
        """What a site is."""
        return self.words.site

    @property
    def contrasts(self) -> list[tuple[dict[str, Any], ClassWords]]:
        """The summary of every comparison of two groups, and the names of the two."""
        found = self.connectivity.get("contrasts", [self.connectivity])
        return [(summary, named) for summary, (_, named) in zip(found, self.words.contrasts, strict=True)]

    @property
    def analysed(self) -> int:
        """Number of analysed subjects."""
        return sum(self.labelled) + self.unlabelled

    @property
    def classes(self) -> str:
        """`10 patients, 12 controls`, and those without a label."""
        shown = [f"{self.labelled[code]} {self.words.many[code]}" for code in self.words.shown]
        return ", ".join([*shown, *([f"{self.unlabelled} unlabelled, never scored"] if self.unlabelled else [])])


def cohort_section(outline: CohortOutline, captions: Mapping[str, str], *, show_subjects: bool) -> CohortSection:
    """Count one cohort and embed its figures."""
    people = read_cohort(outline.participants, outline.included, outline.measures)
    kept = used(people)
    traces = site_rows(pd.read_csv(outline.site_trace, sep="\t")) if outline.site_trace else []
    morphometry = outline.kind != "connectivity"
    confounds = find_confounds(kept, traces, outline.words, morphometry=morphometry)
    left_out = people.loc[~people["included"], ["subject", "reason"]]
    return CohortSection(
        name=outline.name,
        title=f"{SOURCE_TITLES.get(outline.source, 'cohort')} {outline.name}",
        simulated=outline.source == "simulate",
        atlas=outline.atlas,
        atlas_digest=file_digest(outline.parcellation) if outline.parcellation else "",
        attrition=attrition(people),
        words=outline.words,
        labelled=tuple(int((kept["diagnosis"] == code).sum()) for code in range(outline.words.count)),
        unlabelled=int((kept["diagnosis"] < 0).sum()),
        sites=int(kept["site"].nunique()),
        characteristics=[] if outline.kind == "graphs" else characteristics(kept, outline.words),
        ways=read_ways(outline.name, outline.followed),
        twins=len(twin_groups(people)),
        issues=_issues(outline.issues, show_subjects=show_subjects),
        silent=int((kept["silent_regions"] > 0).sum()),
        confounds=[] if outline.kind == "graphs" else confound_sentences(confounds, outline.words),
        quality=[] if outline.kind == "graphs" else _quality(people, outline),
        excluded=tuple((str(subject), str(reason)) for subject, reason in left_out.to_numpy()) if show_subjects else (),
        subjects_digest=_digest("\n".join(sorted(kept["subject"]))),
        series_digest=_digest("\n".join(_checksums(outline, set(kept["subject"])))),
        connectivity=json.loads(Path(outline.connectivity).read_text(encoding="utf-8")),
        kind=outline.kind,
        by_labels=_by_labels(outline, "graph.embedding", "features.selection"),
        embedded_by_labels=bool(_by_labels(outline, "graph.embedding")),
        site_rows=traces,
        crossings=tuple(crossing for path in outline.crossings for crossing in read_crossings(path)),
        pictures=read_pictures(outline.figures, captions, f"cohort {outline.name}"),
    )


def _quality(people: pd.DataFrame, outline: CohortOutline) -> list[str]:
    return quality_words(
        people,
        read_table(outline.connections, ["r", "within_r"]),
        FlagSettings(**outline.flag),
        morphometry=outline.kind == "morphometry",
    )


def _by_labels(outline: CohortOutline, *keys: str) -> list[str]:
    """Titles of the variants with a graph in which one of these settings is `rfe`, each once."""
    variants = [variant for experiment in outline.experiments for variant in experiment.variants]
    chosen = [variant for variant in variants if variant.stages.get("graph") and "rfe" in map(variant.setting, keys)]
    return list(dict.fromkeys(variant.title for variant in chosen))


def _issues(path: str, *, show_subjects: bool) -> tuple[IssueCount, ...]:
    issues = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
    return tuple(
        IssueCount(
            str(kind),
            len(group),
            str(action),
            tuple(filter(None, group["subject"])) if show_subjects else (),
            tuple(group.loc[group["subject"] == "", "detail"]),
        )
        for (kind, action), group in issues.groupby(["kind", "action"], sort=False)
    )


def _checksums(outline: CohortOutline, kept: set[str]) -> list[str]:
    tables = pd.concat([read_table(path, ["subject", "checksum"]) for path in outline.quality], ignore_index=True)
    chosen = tables[tables["subject"].isin(kept)].sort_values("subject")
    return [f"{subject} {checksum}" for subject, checksum in chosen[["subject", "checksum"]].to_numpy()]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
