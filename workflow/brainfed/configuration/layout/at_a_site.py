"""What one site computes by itself, and what it computes together with the others, in the order of all sites."""

from collections.abc import Iterator

from brainfed.configuration.layout.layout import Layout
from brainfed.configuration.layout.paths import cohort_file, method_file, split_file
from brainfed.configuration.planning.experiments import Experiment, Variant
from brainfed.configuration.stages.resolving import with_parents
from brainfed.configuration.stages.stage import Stage

FIRST_FILE = "predictions.parquet"
"""Of the results of a method."""


def is_joint(stage: Stage) -> bool:
    """Whether the job of a stage exchanges numbers with other sites."""
    if stage.kind.name == "features":
        return bool(stage.settings.tangent and stage.settings.reference in ("all", "training"))
    return stage.kind.name in ("inpainting", "fused")


def trains_jointly(variant: Variant) -> bool:
    """Whether a variant's method trains with other sites."""
    return variant.method.topology == "federated"


def joint_files(layout: Layout, cohort: str) -> list[str]:
    """Files of joint jobs, which made one after the other have all joint jobs in the same order at all sites.

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
    """What a site makes without the others: subjects, split, all below no joint stage, and methods that train alone.

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
    found = {stage.name: stage for held in variant.stages.values() for stage in with_parents(held)}
    return list(found.values())
