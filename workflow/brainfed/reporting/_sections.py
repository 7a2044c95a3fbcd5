"""The section of the page on one experiment."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from brainfed.cohort import ClassWords
from brainfed.cohort.settings import FlagSettings
from brainfed.reporting._outline import (
    Attrition,
    CohortOutline,
    ExperimentOutline,
    attrition,
    duplicate_groups,
    read_cohort,
    used,
)
from brainfed.reporting._pictures import Picture, read_pictures
from brainfed.reporting._rounding import counted
from brainfed.reporting.panels import RESULTS, Known, Panel, ShownPanel, applicable, read_known, situation
from brainfed.reporting.tables import (
    Characteristic,
    Crossing,
    SiteRow,
    Ways,
    characteristics,
    confound_sentences,
    find_confounds,
    read_crossings,
    read_ways,
    site_rows,
)
from brainfed.reporting.text import (
    Answer,
    FirstScreen,
    TestedPeople,
    beside_sentence,
    first_screen,
    listed,
    null_sentences,
    null_verdict,
    quality_words,
    sentences,
    verdict,
)
from brainfed.runtime import file_digest, read_json, read_table, read_tables


@dataclass(frozen=True)
class ExperimentSection:
    """One experiment of one cohort: what the frame of the page prints, and the panels that apply.

    Attributes:
        key: unique on the page.
        setting: institutions, folds and repeats in one line.
        protocol: permitted use of test subjects.
        verdict: the answer in one line.
        first: the first screen, for an experiment without a figure of its own; None without an answer.
        sentences: the numbers behind it.
        answer: source of verdict and sentences.
        runs: number of test folds over all repeats.
        headline_note: further rows of the figure of the answer; empty without any.
        panels: that apply, in the order of the page at each place.
    """

    key: str
    outline: ExperimentOutline
    setting: str
    protocol: str
    verdict: str
    first: FirstScreen | None
    sentences: list[str]
    answer: Answer
    runs: int
    headline_note: str
    tested: TestedPeople
    pictures: Mapping[str, Picture]
    panels: list[ShownPanel]

    def at(self, *places: str) -> list[ShownPanel]:
        """The panels at these places, in the order of the places."""
        return [shown for place in places for shown in self.panels if shown.panel.place == place]

    @property
    def results(self) -> list[ShownPanel]:
        """The panels of the section Results."""
        return self.at(*RESULTS)

    @property
    def own_picture(self) -> Picture | None:
        """The figure that repeats one of a paper; a group's first experiment has it."""
        return self.pictures.get(self.outline.figure)

    @property
    def run(self) -> str:
        """What a run of the scores is."""
        return "one fold of one repeat" if self.tested.folds else "the test of one repeat"

    @property
    def is_control(self) -> bool:
        """Whether the diagnoses are shuffled."""
        return self.outline.labels == "permuted"


def experiment_section(
    cohort: CohortOutline,
    outline: ExperimentOutline,
    captions: Mapping[str, str],
    panels: Sequence[Panel],
    site: str = "",
) -> ExperimentSection:
    """Read one experiment's tables, embed its figures, and find which of the panels apply.

    `captions`: figure -> its caption; `site`: of a study between sites, the one whose report it is.
    """
    known = read_known(cohort, outline, captions)
    answer, null, first = known.answer, known.null, None
    if null is not None:
        line, said = null_verdict(null), null_sentences(null)
    else:
        line, said = known.finding, [beside_sentence(result) for result in known.beside]
        if not line:
            line, said = verdict(answer), [*sentences(answer, known.words.unread), *said]
            first = first_screen(answer, known.words, situation(known, site))
    return ExperimentSection(
        key=f"{cohort.name}-{outline.name}",
        outline=outline,
        setting=_setting(outline, known.words, known.institutions, known.runs),
        protocol=_protocol(outline, known.words),
        verdict=line,
        first=first,
        sentences=said,
        answer=answer,
        runs=known.runs,
        headline_note=_headline_note(known),
        tested=known.tested,
        pictures=known.pictures,
        panels=applicable(panels, known),
    )


def _headline_note(known: Known) -> str:
    titles = [result.variant.title for result in known.beside]
    if not titles:
        return ""
    if len(titles) == 1:
        return f"{titles[0]} is shown beside the methods that its paper compares it with."
    return f"{listed(titles)} are shown beside the methods that their papers compare them with."


def _protocol(outline: ExperimentOutline, words: ClassWords) -> str:
    """Permitted use of test subjects, and what population graphs do with them where a variant has one."""
    population, tested = any(variant.stages.get("graph") for variant in outline.variants), f"test {words.subjects}"
    if outline.protocol == "transductive":
        read = "are in the population graph and in" if population else "may be in"
        return (
            f"Transductive: the features of {tested} {read} label-free fits, their labels are used by nothing but the "
            "score."
        )
    if population:
        return (
            f"Inductive: {tested} are in no fit; each attaches alone to the graph of the training {words.subjects}, "
            "and no other prediction depends on it."
        )
    return f"Inductive: {tested} are in no fit, and no other prediction depends on them."


def _setting(outline: ExperimentOutline, words: ClassWords, institutions: int, folds: int) -> str:
    repeats = counted(outline.repeats, "repeat")
    if outline.leaves_sites_out:
        return f"every one of {institutions} {words.site}s tested once, unseen; {repeats}"
    groups = f"groups of {words.site}s" if institutions > 1 else f"a group of {words.site}s"
    origin = {
        "random": " drawn at random",
        "sites": f", one a {words.site}",
        "site_groups": f", {groups}",
        "consecutive": f" of consecutive {words.subjects}, the rest at random",
    }[outline.split["institutions"]]
    drawn = counted(institutions, "institution") + origin
    if outline.split["validation"] == "holdout":
        tested, held_back = (f"{100 * outline.split[key]:g} %" for key in ("tested", "held_back"))
        beside = f", {held_back} held back" if outline.split["held_back"] else ""
        return f"{drawn}; {tested} of each tested{beside}, once a repeat; {repeats}"
    by_site = outline.split["stratify"] == "site_label" and outline.split["institutions"] != "sites"
    stratified = f" stratified by {words.site} and {words.target}" if by_site else ""
    return f"{drawn}; {outline.split['folds']}-fold cross-validation{stratified}; {repeats} ({folds} test folds)"


# The section of the page on one cohort.


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
        title: `simulated cohort demo`.
        atlas_digest: SHA-256 of its image; empty if only series are known.
        labelled: analysed subjects of each class, by code.
        unlabelled: number of analysed subjects that are never scored.
        sites: number of sites of the analysed subjects.
        characteristics: rows of Table 1.
        ways: the subjects that issues name, from scan to score; nobody where ids may not be shown.
        duplicates: number of groups of subjects with identical series.
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
    duplicates: int
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
        summaries = self.connectivity.get("contrasts", [self.connectivity])
        return [(summary, named) for summary, (_, named) in zip(summaries, self.words.contrasts, strict=True)]

    @property
    def analysed(self) -> int:
        """Number of analysed subjects."""
        return sum(self.labelled) + self.unlabelled

    @property
    def classes(self) -> str:
        """`10 patients, 12 controls`, and those without a label."""
        shown = [f"{self.labelled[code]} {self.words.many[code]}" for code in self.words.shown]
        shown += [f"{self.unlabelled} unlabelled, never scored"] if self.unlabelled else []
        return ", ".join(shown)


def cohort_section(outline: CohortOutline, captions: Mapping[str, str], *, show_subjects: bool) -> CohortSection:
    """Count one cohort and embed its figures."""
    people = read_cohort(outline.participants, outline.included, outline.measures)
    kept = used(people)
    traces = site_rows(pd.read_csv(outline.site_trace, sep="\t")) if outline.site_trace else []
    of_people, simulated = outline.kind != "graphs", outline.source == "simulate"
    left_out = people.loc[~people["included"], ["subject", "reason"]]
    checksums = read_tables(outline.quality, ["subject", "checksum"])
    checksums = checksums.loc[checksums["subject"].isin(kept["subject"])].sort_values("subject")
    return CohortSection(
        name=outline.name,
        title=f"{'simulated cohort' if simulated else 'cohort'} {outline.name}",
        simulated=simulated,
        atlas=outline.atlas,
        atlas_digest=file_digest(outline.parcellation) if outline.parcellation else "",
        attrition=attrition(people),
        words=outline.words,
        labelled=tuple(int((kept["diagnosis"] == code).sum()) for code in range(outline.words.count)),
        unlabelled=int((kept["diagnosis"] < 0).sum()),
        sites=int(kept["site"].nunique()),
        characteristics=characteristics(kept, outline.words) if of_people else [],
        ways=read_ways(outline.name, outline.followed),
        duplicates=len(duplicate_groups(people)),
        issues=_issues(outline.issues, show_subjects=show_subjects),
        silent=int((kept["silent_regions"] > 0).sum()),
        confounds=_confounds(kept, traces, outline) if of_people else [],
        quality=_quality(people, outline) if of_people else [],
        excluded=tuple((str(subject), str(reason)) for subject, reason in left_out.to_numpy()) if show_subjects else (),
        subjects_digest=_digest(sorted(kept["subject"])),
        series_digest=_digest(f"{row.subject} {row.checksum}" for row in checksums.itertuples()),
        connectivity=read_json(outline.connectivity),
        kind=outline.kind,
        by_labels=_by_labels(outline, "graph.embedding", "features.selection"),
        embedded_by_labels=bool(_by_labels(outline, "graph.embedding")),
        site_rows=traces,
        crossings=tuple(crossing for path in outline.crossings for crossing in read_crossings(path)),
        pictures=read_pictures(outline.figures, captions, f"cohort {outline.name}"),
    )


def _confounds(kept: pd.DataFrame, traces: list[SiteRow], outline: CohortOutline) -> list[str]:
    morphometry = outline.kind == "morphometry"
    return confound_sentences(find_confounds(kept, traces, outline.words, morphometry=morphometry), outline.words)


def _quality(people: pd.DataFrame, outline: CohortOutline) -> list[str]:
    related, flag = read_table(outline.connections, ["r", "within_r"]), FlagSettings(**outline.flag)
    return quality_words(people, related, flag, morphometry=outline.kind == "morphometry")


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


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
