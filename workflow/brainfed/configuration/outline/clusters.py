"""The variants of an experiment whose server parts the institutions into clusters, and what is read of them."""

from brainfed.configuration.layout.paths import method_file
from brainfed.configuration.planning.experiments import Experiment, Variant
from brainfed.configuration.planning.plan import Plan
from brainfed.configuration.twins import twins_of


def clustered_variants(experiment: Experiment) -> list[Variant]:
    """In the order of the config."""
    return [variant for variant in experiment.variants if variant.method.capabilities.clusters]


def clustered_experiments(plan: Plan) -> list[str]:
    """The experiments with such a variant."""
    return [name for name, experiment in plan.experiments.items() if clustered_variants(experiment)]


def clustered_histories(cohort: str, experiment: Experiment, repeats: int | None = None) -> list[str]:
    """Histories of these variants, every repeat of the first variant first; the first `repeats` of each."""
    return [
        method_file(cohort, experiment.regime.name, variant.name, repeat, "history.parquet")
        for variant in clustered_variants(experiment)
        for repeat in range(repeats or experiment.repeats)
    ]


def local_twins(experiment: Experiment) -> dict[str, str]:
    """Federated variant -> the same model trained in every institution alone, for those that have it."""
    return {name: sides["alone"] for name, sides in twins_of(experiment).items() if "alone" in sides}
