"""What one site computes by itself, and what it computes together with the others, in the order of all sites."""

from collections.abc import Hashable, Iterable, Iterator

from brainfed.configuration.layout._layout import Layout, cohort_file, method_file, split_file
from brainfed.configuration.planning import Experiment, Variant
from brainfed.configuration.stages import Stage
from brainfed.configuration.stages.registry import with_parents

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
    found: set[Hashable] = set()
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
                found |= outer if stage.by_fold else {"all"}
            if not trains_jointly(variant) or is_private(variant):
                continue
            found |= outer
            found |= {(*training, inner) for training in trainings for inner in _inner_sets(variant)}
    return len(found)


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
