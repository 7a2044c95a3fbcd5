"""Contents of the report: cohorts, their experiments, and the paths of their artefacts and figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from brainfed.cohort import DIAGNOSIS_WORDS, ClassWords, Target, class_words
from brainfed.cohort.quality import QUALITY_MEASURES, reason_kind
from brainfed.reporting._variants import NOTHING, ShownVariant, read_variant
from brainfed.runtime import read_table


@dataclass(frozen=True)
class ExperimentOutline:
    """One table of one cohort.

    Attributes:
        protocol: `transductive` or `inductive`.
        labels: `true` or `permuted`.
        reference: reference variant of the tests.
        split: the resolved split settings.
        splits: the split of every repeat.
        participants: table with the labels, where subjects train that no fold tests; else empty.
        tables: paths called summary, runs, tests, gain, confusion, audit.
        figures: name -> SVG.
        variants: in the order of the table.
        pooled: whether a class means the same in all institutions, so that their test subjects may be pooled.
        figure: kind of the paper's figure that it draws (`paper_figures`), or `none`.
        axes: settings on that figure's axes, such as `graph.k`.
        paper: the paper's table or figure that it repeats, such as `fig8`.
        group: name of the group of experiments that it belongs to, or empty.
        members: the experiments of a group, or one a cohort under the figure `dose`; empty for an experiment.
        simulate: settings of its cohort's simulation, for the figure `dose` alone.
    """

    name: str
    title: str
    protocol: str
    labels: str
    reference: str
    repeats: int
    split: dict[str, Any]
    splits: tuple[str, ...]
    tables: dict[str, str]
    figures: dict[str, str]
    variants: tuple[ShownVariant, ...]
    participants: str = ""
    pooled: bool = True
    cohort: str = ""
    figure: str = "none"
    axes: tuple[str, ...] = ()
    paper: str = ""
    group: str = ""
    members: tuple["ExperimentOutline", ...] = ()
    simulate: dict[str, Any] = field(default_factory=dict)

    @property
    def leaves_sites_out(self) -> bool:
        """Whether each site is tested by models that it did not train."""
        return bool(self.split["validation"] == "leave_one_site_out")

    @property
    def draws_anew(self) -> bool:
        """Whether an institution's name is another set of subjects in each repeat."""
        return self.split["institutions"] == "random" and not self.leaves_sites_out and self.repeats > 1

    def variant(self, name: str) -> ShownVariant:
        """The variant of that name."""
        return next(variant for variant in self.variants if variant.name == name)


@dataclass(frozen=True)
class CohortOutline:
    """One cohort: its settings, and the paths of its artefacts.

    Attributes:
        source: `simulate`, `nifti`, `bids`, `timeseries`, `freesurfer` or `tudataset`.
        atlas: name of the parcellation.
        parcellation: its image; empty if only series are known.
        included: the subjects of the analysis.
        connectivity: summary of the group differences.
        site_trace: accuracy of sites predicted from embeddings; empty if no method uses a graph.
        quality: quality tables of all parts.
        measures: the measures of every subject's quality.
        connections: correlation of every connection with motion.
        crossings: exchanges between sites in the search for odd scans and duplicates.
        flag: limits beyond which an included subject is listed.
        figures: name -> SVG.
        target: predicted variable, `diagnosis` or `sex`.
        classes: names of the diagnoses in the order of their codes; empty: patients and controls.
        kind: kind of its features, `connectivity` or `morphometry`, or `graphs`.
        condition: what patients have, as `autism`; empty: not named.
        modality: what institutions hold, as `resting-state scans`; empty: not named.
        followed: the way of the subjects that issues name; empty where no subject may be shown.
    """

    name: str
    source: str
    atlas: str
    parcellation: str
    participants: str
    included: str
    issues: str
    connectivity: str
    site_trace: str
    quality: tuple[str, ...]
    measures: str
    connections: str
    crossings: tuple[str, ...]
    flag: dict[str, float]
    figures: dict[str, str]
    experiments: tuple[ExperimentOutline, ...]
    target: Target = "diagnosis"
    classes: tuple[str, ...] = ()
    kind: str = "connectivity"
    condition: str = ""
    modality: str = ""
    followed: str = ""

    @property
    def words(self) -> ClassWords:
        """Names of its classes, of what patients have and of what institutions hold."""
        return replace(class_words(self.target, self.classes), condition=self.condition, modality=self.modality)


@dataclass(frozen=True)
class SharedStudy:
    """A study between sites, as `site` reports it; `sets`: of its subjects of which exact numbers are added up."""

    sites: tuple[str, ...]
    site: str
    sets: int = 0

    @property
    def others(self) -> tuple[str, ...]:
        """The other sites."""
        return tuple(name for name in self.sites if name != self.site)


@dataclass(frozen=True)
class ReportOutline:
    """The whole report, with the resolved config; `study`: the study between sites that it belongs to, if any."""

    project: str
    title: str
    show_subjects: bool
    seed: int
    config: dict[str, Any]
    cohorts: tuple[CohortOutline, ...]
    study: SharedStudy | None = None


def read_outline(values: Mapping[str, Any], beside: Mapping[str, Sequence[str]] = NOTHING) -> ReportOutline:
    """An outline from its fields as builtins; `beside`: variant -> those that it is always compared with."""
    stated = values.get("study")
    study = SharedStudy(tuple(stated["sites"]), stated["site"], stated["sets"]) if stated else None
    cohorts = tuple(_cohort(item, beside) for item in values["cohorts"])
    return ReportOutline(**{**values, "cohorts": cohorts, "study": study})


def _cohort(values: Mapping[str, Any], beside: Mapping[str, Sequence[str]]) -> CohortOutline:
    experiments = tuple(read_experiment({"cohort": values["name"], **item}, beside) for item in values["experiments"])
    lists = {name: tuple(values.get(name, ())) for name in ("quality", "crossings", "classes")}
    return CohortOutline(**{**values, **lists, "experiments": experiments})


def read_experiment(values: Mapping[str, Any], beside: Mapping[str, Sequence[str]] = NOTHING) -> ExperimentOutline:
    """One experiment, or a group of them, from builtins; `beside` as for `read_outline`."""
    lists: dict[str, Any] = {
        "splits": tuple(values["splits"]),
        "axes": tuple(values.get("axes", ())),
        "variants": tuple(read_variant(item, beside) for item in values["variants"]),
        "members": tuple(read_experiment(item, beside) for item in values.get("members", ())),
    }
    return ExperimentOutline(**{**values, **lists})


# Participants of a cohort in the report: inclusion or reason for exclusion, and quality of the series.


@dataclass(frozen=True)
class Attrition:
    """Numbers of subjects in the phenotype table, left out by reason (the most frequent first), and included."""

    listed: int
    left_out: tuple[tuple[str, int], ...]
    included: int


def read_cohort(participants: str | Path, included: str | Path, measures: str | Path) -> pd.DataFrame:
    """One row a participant, in ascending order of id.

    Returns:
        The columns of the participants but their own `mean_fd`, `included`, `twin_group`, `reason`, and the
        measures of quality (NaN where not known).
    """
    people = read_table(participants, ["subject", "site", "age", "sex", "diagnosis", "has_series"])
    decided = read_table(included, ["subject", "included", "twin_group", "reason"])
    measured = read_table(measures, ["subject", *QUALITY_MEASURES])
    people = people.drop(columns="mean_fd", errors="ignore")
    for table in (decided, measured):
        people = people.merge(table, on="subject", validate="one_to_one")
    return people.sort_values("subject", ignore_index=True)


def used(people: pd.DataFrame) -> pd.DataFrame:
    """The included subjects with the diagnosis as an integer, -1 without one."""
    kept = people[people["included"]].reset_index(drop=True)
    return kept.assign(diagnosis=kept["diagnosis"].fillna(-1).astype("int64"))


def attrition(people: pd.DataFrame) -> Attrition:
    """Count the excluded subjects by kind of reason."""
    kinds = people.loc[~people["included"], "reason"].map(reason_kind).value_counts()
    left_out = sorted(((str(kind), int(count)) for kind, count in kinds.items()), key=lambda item: (-item[1], item[0]))
    return Attrition(len(people), tuple(left_out), int(people["included"].sum()))


def duplicate_groups(people: pd.DataFrame) -> list[list[str]]:
    """Ids of the included subjects with identical series, a list a group."""
    kept = people[people["included"]]
    return [sorted(group["subject"]) for _, group in kept.groupby("twin_group") if len(group) > 1]


def site_table(people: pd.DataFrame, words: ClassWords = DIAGNOSIS_WORDS) -> pd.DataFrame:
    """Included subjects by site, the largest first: site, a column a class, and unlabelled if there are any."""
    kept = used(people)
    columns = {code: words.short[code] for code in words.shown}
    columns |= {-1: "unlabelled"} if (kept["diagnosis"] < 0).any() else {}
    counts = pd.crosstab(kept["site"], kept["diagnosis"]).reindex(columns=list(columns), fill_value=0)
    counts.columns = pd.Index(columns.values())
    order = (-counts.sum(axis=1)).sort_values(kind="stable").index
    return counts.loc[order].reset_index()
