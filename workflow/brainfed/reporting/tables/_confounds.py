"""Confounds of the diagnosis: one paragraph on motion and site, with all their measurements.

Every sentence gives its number. None claims that sites are alike: a single summary (mean connectivity) can be equal at
all sites while the pattern of connections identifies the site. One sentence reports both, the identification first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.cohort import DIAGNOSIS_WORDS, ClassWords
from brainfed.cohort.quality import (
    ClassesBySite,
    GroupDifference,
    SiteDifferences,
    against_rest,
    classes_by_site,
    group_difference,
    site_differences,
)
from brainfed.evaluation import FEWEST, site_trace
from brainfed.graphs import PopulationGraph, homophily
from brainfed.reporting import p_value, rounded, setting_in_words, signed
from brainfed.runtime import read_arrays, read_table

# Homophily of the population graphs of a cohort, compared with chance.

LABELS = ("diagnosis", "sex", "site")
"""Columns with counted agreement along edges; sex is left out if it is the target."""


@dataclass(frozen=True)
class ShownGraph:
    """A population graph of one repeat with its subjects' phenotype.

    Attributes:
        name: name of its stage.
        people: subject, institution, diagnosis, sex, site, age; rows in the order of the nodes.
        scope: `local`, `global` or `global_cut`.
        shuffled: whether it is the control with shuffled neighbours.
        settings: the resolved settings of the graph.
    """

    name: str
    graph: PopulationGraph
    people: pd.DataFrame
    scope: str
    shuffled: bool
    settings: Mapping[str, Any] = field(default_factory=dict)
    words: ClassWords = DIAGNOSIS_WORDS

    @property
    def title(self) -> str:
        """`inside institutions` or `over everybody`, and whether it is the shuffled control."""
        where = {"local": "inside institutions", "global": "over everybody", "global_cut": "over everybody, cut"}
        return where[self.scope] + (", shuffled control" if self.shuffled else "")

    def codes(self, column: str) -> NDArray[np.int64]:
        """(n,) codes of a column, -1 where unknown."""
        return np.asarray(pd.factorize(self.people[column], sort=True)[0], dtype=np.int64)

    def degrees(self) -> NDArray[np.int64]:
        """(n,) number of neighbours that each subject receives from, itself not counted."""
        apart = self.graph.row != self.graph.column
        return np.bincount(self.graph.row[apart], minlength=len(self.people))


def read_graph(
    name: str, path: str | Path, split: str | Path, participants: str | Path, words: ClassWords = DIAGNOSIS_WORDS
) -> ShownGraph:
    """Read a graph artefact and join its subjects' institution and phenotype."""
    file = read_arrays(path, ["row", "column", "weight", "embedding"])
    known = read_table(participants, ["subject", "site", "age", "sex", "diagnosis"])
    drawn = read_table(split, ["subject", "institution"])
    people = pd.DataFrame({"subject": list(file.subjects)})
    for table in (drawn, known):
        people = people.merge(table, on="subject", how="left", validate="one_to_one")
    row, column, weight, embedding = (file.arrays[part] for part in ("row", "column", "weight", "embedding"))
    graph = PopulationGraph(row, column, weight, embedding, tuple(file.metadata["sigma"]))
    settings = file.metadata["settings"]
    return ShownGraph(name, graph, people, settings["scope"], bool(settings["shuffle"]), settings, words)


def distinct_titles(graphs: Sequence[ShownGraph], keys: Sequence[str] | None = None) -> list[str]:
    """The title of every graph; stages with equal titles get the settings in which they differ: `..., k = 5`.

    Args:
        graphs: in the order of the titles.
        keys: settings that may distinguish stages; None: all, and the stage's name if none differs.
    """
    return [_distinct(shown, [other for other in graphs if other.title == shown.title], keys) for shown in graphs]


def _distinct(shown: ShownGraph, alike: Sequence[ShownGraph], keys: Sequence[str] | None) -> str:
    if len({other.name for other in alike}) == 1:
        return shown.title
    parts = [
        setting_in_words(key, value)
        for key, value in shown.settings.items()
        if (keys is None or key in keys) and any(other.settings.get(key) != value for other in alike)
    ]
    if keys is None and len({other.name for other in alike if other.settings == shown.settings}) > 1:
        parts.append(shown.name)
    return ", ".join([shown.title, *parts])


def homophily_table(graphs: Sequence[ShownGraph]) -> pd.DataFrame:
    """Homophily of every graph and label: graph, title, label, found, chance, edges."""
    rows = []
    for shown, title in zip(graphs, distinct_titles(graphs), strict=True):
        group = None if shown.scope == "global" else shown.codes("institution")
        for label in [label for label in LABELS if label != shown.words.target or label == "diagnosis"]:
            result = homophily(shown.graph, shown.codes(label), group)
            name = shown.words.target if label == "diagnosis" else label
            rows.append((shown.name, title, name, result.unweighted, result.chance, result.edges))
    return pd.DataFrame(rows, columns=["graph", "title", "label", "found", "chance", "edges"])


# Accuracy of the site predicted from the embedding of each kind of graph (`evaluation._site_trace`).

COLUMNS = ("graph", "title", "group", "accuracy", "chance", "subjects", "sites", "left_out")


def site_trace_table(graphs: Sequence[ShownGraph]) -> pd.DataFrame:
    """One row an embedding of a group of subjects: an institution, or all.

    Graphs that differ in their edges alone share an embedding and its row: shuffled controls, other numbers of
    neighbours, a graph over all subjects before and after the cut, and the same graph in every repeat.
    """
    rows = []
    seen: set[tuple[bytes, bytes]] = set()
    # A cut removes edges and keeps the embedding.
    uncut = [replace(shown, scope=shown.scope.removesuffix("_cut")) for shown in graphs if not shown.shuffled]
    for shown, title in zip(uncut, distinct_titles(uncut, ["embedding_dimensions"]), strict=True):
        site = shown.codes("site")
        for group, members in _groups(shown).items():
            embedding = shown.graph.embedding[members]
            points = (members.tobytes(), embedding.tobytes())
            if points not in seen:
                seen.add(points)
                rows.append((shown.name, title, group, *astuple(site_trace(embedding, site[members]))))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _groups(shown: ShownGraph) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Positions of the subjects that share one projection."""
    if shown.scope != "local":
        return {"everybody": np.arange(len(shown.people))}
    institution = shown.people["institution"]
    return {str(name): np.flatnonzero(institution == name) for name in sorted(institution.dropna().unique())}


@dataclass(frozen=True)
class SiteRow:
    """One kind of graph: the mean over its embeddings with two sites or more.

    Attributes:
        title: `inside institutions` or `over everybody`.
        accuracy, lowest, highest: mean over embeddings, and extremes; NaN if no embedding has two sites.
        chance: mean share of the largest site.
        embeddings: number of these embeddings.
        sites, subjects: fewest and most of an embedding: `12`, `9–12`.
        left_out: most sites that an embedding leaves out as too small.
        fewest_subjects: fewest subjects of an embedding; 0 if no embedding has two sites.
    """

    title: str
    accuracy: float
    chance: float
    lowest: float
    highest: float
    embeddings: int
    sites: str
    subjects: str
    left_out: int
    fewest_subjects: int = 0

    @property
    def above_chance(self) -> bool:
        """Whether the accuracy exceeds chance by more than two standard errors in the smallest embedding."""
        error = np.sqrt(self.chance * (1 - self.chance) / self.fewest_subjects)
        return bool(self.accuracy > self.chance + 2 * error)


def site_rows(table: pd.DataFrame) -> list[SiteRow]:
    """The rows of the page, one a kind of graph."""
    rows = []
    for title, group in table.groupby("title", sort=False):
        scored = group.dropna(subset=["accuracy"])
        if scored.empty:
            rows.append(SiteRow(str(title), np.nan, np.nan, np.nan, np.nan, 0, "", "", 0))
            continue
        accuracy, chance, subjects = scored["accuracy"], scored["chance"], scored["subjects"]
        rows.append(
            SiteRow(
                str(title), float(accuracy.mean()), float(chance.mean()), float(accuracy.min()), float(accuracy.max()),
                len(scored), _range(scored["sites"]), _range(subjects), int(scored["left_out"].max()),
                int(subjects.min()),
            )
        )  # fmt: skip
    return rows


def _range(values: pd.Series) -> str:
    low, high = int(values.min()), int(values.max())
    return str(low) if low == high else f"{low}\u2013{high}"


# The paragraph.


@dataclass(frozen=True)
class Confounds:
    """All measured confounds; None if not measured.

    Attributes:
        features: kind of features: `connectivity` or `measures`.
        identified: prediction of the site from the input of the graph, a summary of the features.
        summary: mean connectivity by site.
        motion: mean FD of two groups, patients and controls or a class and all others, with their words.
        motion_sites: mean FD by site.
    """

    features: str
    classes: ClassesBySite | None = None
    identified: SiteRow | None = None
    summary: SiteDifferences | None = None
    motion: tuple[tuple[GroupDifference, ClassWords], ...] = ()
    motion_sites: SiteDifferences | None = None


def find_confounds(
    kept: pd.DataFrame, traces: list[SiteRow], words: ClassWords = DIAGNOSIS_WORDS, *, morphometry: bool
) -> Confounds:
    """Measure the confounds.

    Args:
        kept: the analysed subjects with site, diagnosis (-1 unknown) and measures.
        traces: accuracy of the site predicted from the embedding of each kind of graph.
        morphometry: whether the features are FreeSurfer measures.
    """
    known = [trace for trace in traces if trace.embeddings]
    diagnosis = kept["diagnosis"].where(kept["diagnosis"] >= 0)
    return Confounds(
        "measures" if morphometry else "connectivity",
        classes_by_site(diagnosis, kept["site"]),
        max(known, key=lambda trace: trace.fewest_subjects, default=None),
        None if morphometry else site_differences(kept["mean_fc"], kept["site"]),
        tuple(
            (gap, named)
            for code, named in words.contrasts
            if (gap := group_difference(kept["mean_fd"], against_rest(diagnosis, code))) is not None
        ),
        site_differences(kept["mean_fd"], kept["site"]),
    )


def confound_sentences(links: Confounds, words: ClassWords = DIAGNOSIS_WORDS) -> list[str]:
    """The sentences of the paragraph, in order: site and diagnosis, site and features, motion."""
    said = [_classes(links.classes, words), *_site(links, words), _motion(links.motion)]
    if links.motion_sites is not None:
        said.append(
            f"The site explains {_percent(links.motion_sites.explained)} of the variance of motion (one-way analysis "
            f"of variance, {p_value(links.motion_sites.p)})."
        )
    return [sentence for sentence in said if sentence]


def _classes(classes: ClassesBySite | None, words: ClassWords) -> str:
    if classes is None:
        return ""
    target, alone = words.target, ""
    if classes.one_class:
        alone = f" At {classes.one_class} of {classes.sites} sites all subjects have one {target}."
    return (
        f"Site and {target}: guessing each site\u2019s more frequent {target} is right for {_percent(classes.guessed)} "
        f"of the subjects, guessing that of the whole cohort for {_percent(classes.chance)} (Cram\u00e9r\u2019s V = "
        f"{rounded(classes.v, 2)}; chi-square test, {p_value(classes.p)}).{alone}"
    )


def _site(links: Confounds, words: ClassWords) -> list[str]:
    summary = ""
    if links.summary is not None:
        summary = (
            f"explains {_percent(links.summary.explained)} of the variance of a subject\u2019s mean connectivity "
            f"(one-way analysis of variance, {p_value(links.summary.p)})"
        )
    if links.identified is None:
        unknown = "how well it is identified from what a graph compares was not measured"
        return [f"The site {summary}; {unknown}."] if summary else []
    accuracy, chance = _percent(links.identified.accuracy), _percent(links.identified.chance)
    if links.identified.above_chance:
        said = [
            f"Site and {links.features}: a model names the site from a summary of {links.features} for {accuracy} of "
            f"the subjects at sites with {FEWEST} or more, where naming the largest site is right for {chance}. A "
            f"method can therefore learn the site in place of the {words.target}, as far as the two go together."
        ]
        end = ": that is one number a subject, which can hide what many connections show together."
    else:
        said = [
            f"Site and {links.features}: a model names the site from a summary of {links.features} no better than by "
            f"naming the largest site ({accuracy} of the subjects at sites with {FEWEST} or more, against {chance})."
        ]
        end = "."
    return [*said, f"The site {summary}{end}"] if summary else said


def _motion(motion: Sequence[tuple[GroupDifference, ClassWords]]) -> str:
    if not motion:
        return ""
    target = motion[0][1].target
    compared = "; ".join(
        f"mean FD {rounded(gap.patients)} mm in {words.many[1]} and "
        f"{rounded(gap.controls)} mm in {words.many[0]}, a difference of "
        f"{signed(gap.patients - gap.controls)} mm (95 % interval {signed(gap.low)} to {signed(gap.high)}, "
        f"d = {signed(gap.effect, 2)}; Welch\u2019s t-test, {p_value(gap.p)})"
        for gap, words in motion
    )
    return (
        f"Motion and {target}: {compared}. The score of the baseline \u201cMotion\u201d, where it was run, is that of "
        "motion alone."
    )


def _percent(share: float) -> str:
    return f"{rounded(100 * share, 0)}\u00a0%"
