"""Outline of one row of a table; builtins only."""

from typing import Any

from brainfed.configuration.layout.layout import Layout
from brainfed.configuration.layout.paths import beside, method_file, timing_of
from brainfed.configuration.planning.experiments import Experiment, Variant
from brainfed.configuration.planning.figures import knows_truth
from brainfed.configuration.shipped import shipped_settings
from brainfed.configuration.stages import registry
from brainfed.configuration.stages.stage import Stage
from brainfed.configuration.twins import find_twins, topology_of


def shown_variant(variant: Variant, experiment: Experiment) -> dict[str, Any]:
    """Fields of a variant in a figure."""
    return {
        "name": variant.name,
        "method": variant.method.name,
        "method_title": variant.method.title,
        "family": variant.method.family,
        "topology": topology_of(variant),
        "twins": find_twins(variant, experiment.variants),
        "clusters": variant.method.capabilities.clusters,
        "settings": variant.settings,
        "shipped": shipped_settings(variant.method),
        "stages": variant.stage_settings(),
    }


def variant_outline(layout: Layout, cohort: str, experiment: Experiment, variant: Variant) -> dict[str, Any]:
    """Fields of a variant in a report, and the files of its results and stages."""

    def own(name: str) -> list[str]:
        regime = experiment.regime.name
        return [method_file(cohort, regime, variant.name, repeat, name) for repeat in range(experiment.repeats)]

    files = {
        kind.name: layout.files_of_repeats(variant.stage(kind.name), cohort, experiment.repeats)
        for kind in registry.KINDS
    }
    shown = shown_variant(variant, experiment)
    return {
        **shown,
        "twins": _possible(shown["twins"], layout, cohort, experiment),
        "costs": own("cost.json"),
        "timings": own("timing.json"),
        "histories": own("history.parquet"),
        "privacy": own("privacy.json"),
        **{kind.shown: files[kind.name] for kind in registry.KINDS if kind.shown},
        **{
            kind.key: {name: [beside(path, file) for path in files[kind.name]] for name, file in kind.records.items()}
            for kind in registry.KINDS
            if kind.records
        },
        "preparation": {
            kind.key: _timings(layout, cohort, experiment, variant.stage(kind.name))
            for kind in registry.KINDS
            if kind.timed
        },
        "fidelity": _fidelity(cohort, experiment, variant),
    }


def _possible(
    twins: dict[str, dict[str, Any]], layout: Layout, cohort: str, experiment: Experiment
) -> dict[str, dict[str, Any]]:
    """The twins, without advice to pool data sets of graphs that differ in features and classes.

    A site of a study has no pooled data, and only the coordinator adds a variant. One that is left out has no model of
    its own.
    """
    if layout.plan.project.study.site:
        missing = twins.get("alone", {}).get("missing", "")
        advised = f"the coordinator adds {missing.removeprefix('add ')} to the study before it begins"
        if experiment.regime.unseen:
            advised = "a site that is left out has no model of its own"
        return {
            side: twin | {"missing": advised} if missing.startswith("add ") else twin
            for side, twin in twins.items()
            if side == "alone"
        }
    if len(layout.plan.project.cohorts[cohort].tudataset.names) < 2:
        return twins
    reason = "data sets that differ in features and classes cannot be pooled"
    return {
        side: twin | {"missing": reason} if side == "pooled" and twin["missing"] else twin
        for side, twin in twins.items()
    }


def _timings(layout: Layout, cohort: str, experiment: Experiment, stage: Stage | None) -> list[str]:
    """Timings of what a split needs of a stage, and of the features that it joins or starts from."""
    if stage is None or layout.has_graphs(cohort):
        return []
    same = [*(own for own in stage.parents if own.kind is stage.kind), stage]
    needed = (layout.files_of_repeats(own, cohort, experiment.repeats) for own in same if own.split)
    return list(dict.fromkeys(timing_of(path) for files in needed for path in files))


def _fidelity(cohort: str, experiment: Experiment, variant: Variant) -> list[str]:
    """Fidelity of generated neighbours, in an experiment with that figure, if the true neighbours are known."""
    if experiment.settings.figure != "fidelity" or not knows_truth(variant):
        return []
    name = variant.stages["fused"].name
    return [f"results/{cohort}/fidelity/{name}/repeat-{repeat}.json" for repeat in range(experiment.repeats)]
