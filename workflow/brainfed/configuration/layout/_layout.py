"""Where the artefacts of a run lie, the locks on them, and which of them a site computes with the others."""

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from brainfed.cohort.phenotype import in_order
from brainfed.cohort.sources import Listing
from brainfed.configuration import TABLE_ENDINGS
from brainfed.configuration.planning import Experiment, Plan, Variant
from brainfed.configuration.stages import Stage
from brainfed.configuration.stages.features import covariances_folder
from brainfed.configuration.stages.graphs import CONNECTOMES
from brainfed.configuration.stages.registry import kind_of, with_parents

Roles = dict[str, str | list[str]]
"""Name of an input of a rule -> its file or files."""
ARTEFACT = ".safetensors"
TIMING = "-timing.json"
BETWEEN = "-"
"""Between the columns in a name of participants."""


def cohort_file(cohort: str, name: str) -> str:
    """An artefact that describes a cohort, such as `participants.parquet`."""
    return f"results/{cohort}/cohort/{name}"


def participants_file(cohort: str, columns: Iterable[str]) -> str:
    """The participants with some columns of the phenotype table, as jobs declare what they read of it."""
    return cohort_file(cohort, f"participants/{BETWEEN.join(in_order(columns))}.parquet")


def graphs_file(cohort: str) -> str:
    """The graphs of a cohort whose samples they are from the start."""
    return f"results/{cohort}/graphs-read/graphs{ARTEFACT}"


def split_file(cohort: str, split: str, repeat: int | str) -> str:
    """Institutions and folds of one repeat."""
    return f"results/{cohort}/splits/{split}/repeat-{repeat}.parquet"


def table_pattern(ending: str = "") -> str:
    """Output path of a table of an experiment, with wildcards; a ValueError for an ending not in TABLE_ENDINGS."""
    if ending not in ("", *TABLE_ENDINGS):
        raise ValueError(f"{ending!r} is not in TABLE_ENDINGS; add it there")
    return f"results/{{cohort}}/tables/{{experiment}}{ending}.tsv"


def stage_file(stage: Stage, cohort: str, repeat: int | str, part: str = "all") -> str:
    """One part of a stage; the path has a part if every fold has one, a repeat if the stage depends on a split."""
    own = stage.kind.file.format(part=part if stage.by_fold else "all")
    return f"results/{cohort}/{stage.kind.folder}/{stage.name}/{f'repeat-{repeat}/' if stage.split else ''}{own}"


def stage_pattern(kind: str, *, part: str = "{part}", repeat: str = "repeat-{repeat}/", name: str = "") -> str:
    """Output path of the stages of a kind, with wildcards; with a name, another file of the part's folder."""
    declared = kind_of(kind)
    path = f"results/{{cohort}}/{declared.folder}/{{{kind}}}/{repeat}{declared.file.replace('{part}', part)}"
    return beside(path, name) if name else path


def beside(path: str, name: str) -> str:
    """Another file in the folder of an artefact."""
    return str(PurePosixPath(path).with_name(name))


def timing_of(path: str) -> str:
    """The timing file of an artefact, in the same folder."""
    return path.removesuffix(ARTEFACT) + TIMING


def covariance_pattern() -> str:
    """Output path of the covariances of one shard, with wildcards."""
    return f"results/{{cohort}}/{covariances_folder('{shrinkage}')}/{{shard}}{ARTEFACT}"


def model_file(cohort: str, variant: str, name: str) -> str:
    """A file of a kept model's folder, which a user may copy elsewhere."""
    return f"results/{cohort}/models/{variant}/{name}"


def method_file(cohort: str, regime: str, variant: str, repeat: int | str, name: str) -> str:
    """One result file of a variant."""
    return f"results/{cohort}/methods/{regime}/{variant}/repeat-{repeat}/{name}"


def result_files(
    cohort: str, experiment: Experiment, name: str, variants: Sequence[Variant], repeats: int | None = None
) -> list[str]:
    """One result file of these variants, every repeat (or the first `repeats`) of the first variant first."""
    return [
        method_file(cohort, experiment.regime.name, variant.name, repeat, name)
        for variant in variants
        for repeat in range(repeats or experiment.repeats)
    ]


NAME = ".lock"


def lock_files(results: Path, cohorts: Iterable[str], project: str) -> list[Path]:
    """The locks of cohorts and of a project's report; their folders are made.

    A linked folder below a cohort, such as series that several projects share, has a lock of its own.
    """
    folders = [results / cohort for cohort in cohorts]
    locks = [folder / NAME for folder in folders] + [results / "reports" / f".{project}{NAME}"]
    for lock in locks:
        with suppress(OSError):
            lock.parent.mkdir(parents=True, exist_ok=True)
    return locks + [link / NAME for folder in folders for link in _links(folder)]


def _links(folder: Path) -> list[Path]:
    with suppress(OSError), os.scandir(folder) as entries:
        return [Path(entry.path) for entry in entries if entry.is_symlink() and entry.is_dir()]
    return []


# The input files of the jobs of a plan: the parts of each stage and their paths.

OF_METHODS = ("site", "diagnosis")
"""Columns of the phenotype table that every method reads; `Method.phenotypes` are further ones."""


@dataclass(frozen=True)
class Layout:
    """The files of a plan; a split by sites has as many folds as the listed cohort has sites."""

    plan: Plan
    listings: Mapping[str, Listing]

    def folds(self, cohort: str, split: str) -> int:
        """Number of folds of a split: by its settings, or the number of the study's or the cohort's scored sites."""
        fixed = self.plan.splits[split].test_folds
        if fixed is not None:
            return fixed
        return len(self.plan.project.study.sites) or len(self.listings[cohort].labelled_sites)

    def has_graphs(self, cohort: str) -> bool:
        """Whether the samples of a cohort are graphs from the start."""
        return self.plan.project.cohorts[cohort].kind == "graphs"

    def parts(self, stage: Stage, cohort: str) -> list[str]:
        """One part for all folds, or one part a fold."""
        return [f"fold-{fold}" for fold in range(self.folds(cohort, stage.split))] if stage.by_fold else ["all"]

    def files_of(self, stage: Stage | None, cohort: str, repeat: int | str) -> list[str]:
        """All parts of a stage in one repeat; empty without a stage.

        A cohort of graphs has no features, and its own graphs in place of connectomes.
        """
        if stage is None:
            return []
        if self.has_graphs(cohort):
            return [graphs_file(cohort)] if stage.kind is CONNECTOMES else []
        return [stage_file(stage, cohort, repeat, part) for part in self.parts(stage, cohort)]

    def files_of_repeats(self, stage: Stage | None, cohort: str, repeats: int) -> list[str]:
        """All parts of a stage in all repeats, each file once."""
        files = (path for repeat in range(repeats) for path in self.files_of(stage, cohort, repeat))
        return list(dict.fromkeys(files))

    def stage_inputs(self, stage: Stage, cohort: str, repeat: int | str, part: str) -> Roles:
        """Inputs of the job of one part of a stage: subjects, and the same part of the stages above."""
        return self._subjects(cohort, stage.split, repeat, stage.kind.phenotypes(stage)) | {
            above.kind.role: stage_file(above, cohort, repeat, part) for above in stage.parents
        }

    def covariance_files(self, features: Stage, cohort: str) -> list[str]:
        """The covariances of all shards that tangent features read."""
        folder = f"results/{cohort}/{covariances_folder(features.settings.shrinkage)}"
        return [f"{folder}/{shard}{ARTEFACT}" for shard in self.listings[cohort].shards]

    def fitting_inputs(self, stage: Stage, cohort: str, repeat: int | str, fold: int | str) -> Roles:
        """Inputs of features fitted in one fold: features of all subjects if a fold starts from them, else covariances.

        Participants are read if diagnoses, or sites, ages and sexes have an effect.
        """
        return {
            "covariances": [] if stage.parents else self.covariance_files(stage, cohort),
            "whole": stage_file(stage.parents[0], cohort, repeat, f"fold-{fold}") if stage.parents else [],
            **self._subjects(cohort, stage.split, repeat, stage.kind.phenotypes(stage)),
        }

    def view_inputs(self, stage: Stage, cohort: str, repeat: int | str = "", part: str = "all") -> list[str]:
        """The features that one part of features of several views joins, in the order of the views."""
        return [stage_file(view, cohort, repeat, part) for view in stage.parents]

    def connectome_inputs(self, stage: Stage, cohort: str, repeat: int | str = "", part: str = "all") -> Roles:
        """Inputs of one part of the connectomes: the same part of the features, and the included subjects."""
        features = stage_file(stage.parent("features"), cohort, repeat, part)
        return {"features": features, "included": cohort_file(cohort, "included.parquet")}

    def fidelity_inputs(self, fused: Stage, cohort: str, repeat: int | str) -> Roles:
        """Inputs of the fidelity of a fused graph, for the first part of the repeat."""
        part = self.parts(fused, cohort)[0]
        read = self.stage_inputs(fused, cohort, repeat, part)
        del read["generator"]
        return read | {"fused": stage_file(fused, cohort, repeat, part)}

    def method_inputs(self, variant: Variant, regime: str, cohort: str, repeat: int | str) -> Roles:
        """Inputs of a method in one repeat: subjects, and all parts of the stages that it needs.

        Raises:
            ValueError: the method needs two stages that its job would read as the same kind.
        """
        columns = (*OF_METHODS, *variant.method.phenotypes)
        needed = [variant.stages[name] for name in variant.method.needs]
        files = {stage.kind.read_as or stage.kind.folder: self.files_of(stage, cohort, repeat) for stage in needed}
        if len(files) < len(needed):
            raise ValueError(f"{variant.method.name}: expected stages of different kinds, found {variant.method.needs}")
        return self._subjects(cohort, self.plan.regimes[regime].split, repeat, columns) | files

    def kept_inputs(self, variant: Variant, regime: str, cohort: str, repeat: int | str) -> Roles:
        """`method_inputs` where models are kept: also what fits tangent features' references, and the region table."""
        features = variant.stages["features"]
        return self.method_inputs(variant, regime, cohort, repeat) | {
            "covariances": self.covariance_files(features, cohort) if features.settings.tangent else [],
            "included": cohort_file(cohort, "included.parquet"),
            "regions": self.listings[cohort].labels or [],
        }

    def splits(self, cohort: str, experiment: Experiment) -> list[str]:
        """The split of every repeat of an experiment."""
        return [split_file(cohort, experiment.regime.split, repeat) for repeat in range(experiment.repeats)]

    def labels_beside(self, cohort: str, experiment: Experiment) -> list[str]:
        """The table with the labels, where the splits of an experiment have training subjects that are not scored."""
        return [participants_file(cohort, OF_METHODS)] if experiment.split.trains_untested else []

    def _subjects(self, cohort: str, split: str, repeat: int | str, columns: Sequence[str]) -> Roles:
        """The split, and the participants with the columns that a job declares; none without any."""
        people: str | list[str] = participants_file(cohort, columns) if columns else []
        return {"split": split_file(cohort, split, repeat), "participants": people}


# What one site computes by itself, and what it computes together with the others, in the order of all sites.

FIRST_FILE = "predictions.parquet"
"""Of the results of a method."""

INNER_FOLDS = 5
"""Of one training set (`samples._inner_folds`, which this light module does not import; a test compares them)."""


def is_joint(stage: Stage) -> bool:
    """Whether the job of a stage exchanges numbers with other sites."""
    if stage.kind.name == "features":
        return bool(stage.settings.tangent and stage.settings.reference in ("all", "training"))
    return stage.kind.name in ("inpainting", "fused")


def trains_jointly(variant: Variant) -> bool:
    """Whether a variant's method trains with other sites."""
    return variant.method.topology == "federated"


def joint_files(layout: Layout, cohort: str) -> list[str]:
    """Files of joint jobs; made one after the other, they run all joint jobs in the same order at all sites.

    A file whose joint stages have one part each is made with them: their jobs wait for each other.
    """
    files: dict[str, None] = {}
    for experiment, variant, repeat in _runs(layout, cohort):
        for stage in _stages(variant):
            if is_joint(stage) and stage.by_fold:
                files |= dict.fromkeys(layout.files_of(stage, cohort, repeat))
        if trains_jointly(variant):
            files[predictions_file(cohort, experiment, variant, repeat)] = None
    return list(files)


def is_private(variant: Variant) -> bool:
    """Whether everything that a variant's training sends carries noise which an accountant counts."""
    return bool(variant.settings.get("privacy", "none") != "none")


def sets_added_up(experiments: Iterable[Experiment], folds: int = 0) -> int:
    """Number of different sets of one site's subjects of which exact numbers are added up in a study.

    Training sets of the folds and repeats of each split, inner training sets, and all subjects at once. A coordinator
    has one equation a set in each feature: with as many sets as subjects it can solve them. Numbers with the noise of
    a private variant are not counted.

    Args:
        experiments: of the plan; those that a run without targets leaves out are not counted.
        folds: number of folds of splits that leave each site out in turn, which is that of the sites.
    """
    sets: set[Hashable] = set()
    for experiment in (each for each in experiments if each.default):
        unseen, split = experiment.regime.unseen, experiment.regime.split
        trainings = [
            (split, repeat, fold)
            for repeat in range(experiment.repeats)
            for fold in range(folds if unseen else experiment.split.folds)
        ]
        # A site that is left out of one fold has the same training subjects in all others.
        outer: set[Hashable] = {"all"} if unseen else set(trainings)
        for variant in experiment.variants:
            # Tangent features may start from sums over all sites also where a method trains alone.
            for stage in filter(is_joint, _stages(variant)):
                sets |= outer if stage.by_fold else {"all"}
            if not trains_jointly(variant) or is_private(variant):
                continue
            sets |= outer
            sets |= {(*training, inner) for training in trainings for inner in _inner_sets(variant)}
    return len(sets)


def _inner_sets(variant: Variant) -> list[tuple[str, int]]:
    """Names of the inner training sets of one training; two methods with one grid's name deal the same."""
    grid = variant.method.crossing.inner_grid
    # `solver: fedavg` has no penalty to choose.
    chooses = grid and len(variant.settings[grid]) > 1 and variant.settings.get("solver") != "fedavg"
    return [(grid, inner) for inner in range(INNER_FOLDS)] if chooses else []


def predictions_file(cohort: str, experiment: Experiment, variant: Variant, repeat: int) -> str:
    """The predictions of a variant."""
    return method_file(cohort, experiment.regime.name, variant.name, repeat, FIRST_FILE)


def all_predictions(layout: Layout, cohort: str) -> dict[tuple[str, int], str]:
    """(variant, repeat) -> predictions, of all variants of a site."""
    return {
        (variant.name, repeat): predictions_file(cohort, experiment, variant, repeat)
        for experiment, variant, repeat in _runs(layout, cohort)
    }


def own_files(layout: Layout, cohort: str) -> list[str]:
    """Files that a site makes alone: subjects, split, all below no joint stage, and methods that train alone.

    The list of issues is among them: a person looks at it before the study.
    """
    files: dict[str, None] = dict.fromkeys(cohort_file(cohort, name) for name in ("participants.parquet", "issues.tsv"))
    for experiment, variant, repeat in _runs(layout, cohort):
        files[split_file(cohort, experiment.regime.split, repeat)] = None
        if not trains_jointly(variant):
            files[predictions_file(cohort, experiment, variant, repeat)] = None
        for stage in _stages(variant):
            if not any(is_joint(each) for each in with_parents(stage)):
                files |= dict.fromkeys(layout.files_of(stage, cohort, repeat))
            elif stage.kind.name == "features":
                files |= dict.fromkeys(layout.covariance_files(stage, cohort))
    return list(files)


def _runs(layout: Layout, cohort: str) -> Iterator[tuple[Experiment, Variant, int]]:
    for experiment in layout.plan.experiments.values():
        if experiment.default and cohort in experiment.cohorts:
            for variant in experiment.variants:
                for repeat in range(experiment.repeats):
                    yield experiment, variant, repeat


def _stages(variant: Variant) -> list[Stage]:
    """All stages of a variant, each once, parents first."""
    stages = {stage.name: stage for child in variant.stages.values() for stage in with_parents(child)}
    return list(stages.values())
