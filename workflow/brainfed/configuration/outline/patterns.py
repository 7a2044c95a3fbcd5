"""The linear models of an experiment with a shown pattern, and what the job that shows it reads."""

from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.configuration.layout.paths import method_file
from brainfed.configuration.planning.experiments import Experiment, Variant
from brainfed.configuration.planning.plan import Plan
from brainfed.configuration.twins import topology_of

SHOWN = 3
"""Largest number of variants with a shown pattern."""


def explained_variants(experiment: Experiment) -> list[Variant]:
    """Variants with a shown pattern, chosen by the config alone: no score decides.

    Of the linear models, the reference of the tests and the federated ones in the order of the config, at most
    `SHOWN`. Without any of these, the first on pooled data, or else the first. None under permuted labels, where a
    pattern would describe noise.
    """
    linear = [variant for variant in experiment.variants if _leaves_patterns(variant)]
    if experiment.regime.labels != "true":
        return []
    reference = [variant for variant in linear if variant.name == experiment.settings.reference]
    federated = [variant for variant in linear if topology_of(variant) == "federated" and variant not in reference]
    pooled = [variant for variant in linear if topology_of(variant) == "central"]
    return [*reference, *federated][:SHOWN] or pooled[:1] or linear[:1]


def _leaves_patterns(variant: Variant) -> bool:
    without = variant.method.capabilities.without_patterns.items()
    return variant.method.capabilities.patterns and not any(variant.settings[key] == value for key, value in without)


def explained_experiments(plan: Plan) -> list[str]:
    """The experiments with a shown pattern."""
    return [name for name, experiment in plan.experiments.items() if explained_variants(experiment)]


def explained_files(cohort: str, experiment: Experiment, name: str = "patterns.safetensors") -> list[str]:
    """One file of the shown variants, every repeat of the first variant first."""
    return [
        method_file(cohort, experiment.regime.name, variant.name, repeat, name)
        for variant in explained_variants(experiment)
        for repeat in range(experiment.repeats)
    ]


def truth_file(cohort: str, settings: CohortSettings) -> str | list[str]:
    """The planted connections of a simulated cohort of two classes; empty for any other."""
    planted = settings.source == "simulate" and not settings.classes
    return f"results/{cohort}/simulated/truth.json" if planted else []
