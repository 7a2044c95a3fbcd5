"""The models that a run keeps for new patients, and why it keeps no others."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from brainfed.configuration.names import known
from brainfed.configuration.planning.experiments import Experiment, Variant
from brainfed.configuration.project import ProjectSettings
from brainfed.runtime.errors import UserError

REPEAT = 0
"""The repeat whose institutions and folds a kept model has."""


@dataclass(frozen=True)
class KeptModel:
    """The model of one variant on one cohort, of the first repeat.

    Attributes:
        cohort: its name.
        regime: name of the regime of the first experiment with the variant and the cohort.
        split: name of its split.
        variant: the variant.
    """

    cohort: str
    regime: str
    split: str
    variant: Variant


def kept_models(project: ProjectSettings, experiments: Iterable[Experiment]) -> tuple[KeptModel, ...]:
    """The models of the variants under `models`, by cohort and variant.

    Raises:
        UserError: no experiment with true labels has such a variant, its method keeps no model, or its features need
            more than a series.
    """
    found: dict[tuple[str, str], KeptModel] = {}
    held: dict[str, Variant] = {}
    for experiment in (one for one in experiments if one.regime.labels == "true"):
        for variant in experiment.variants:
            held.setdefault(variant.name, variant)
            for cohort in experiment.cohorts if variant.name in project.models else ():
                made = KeptModel(cohort, experiment.regime.name, experiment.regime.split, variant)
                found.setdefault((variant.name, cohort), made)
    for name in project.models:
        known(name, held, "config: models", "variant of an experiment with true labels")
    for model in found.values():
        refuse_unkept(model.variant)
    return tuple(found[key] for key in sorted(found))


def refuse_unkept(variant: Variant) -> None:
    """Refuse a variant of which no model can be kept.

    Raises:
        UserError: with the reason.
    """
    problem = _of_method(variant) or _of_features(variant)
    if problem:
        raise UserError(
            f"config: models: expected a variant that scores a patient alone, found {variant.name!r}, {problem}"
        )


def _of_method(variant: Variant) -> str:
    method = variant.method
    if {"graph", "fused"} & set(method.needs):
        return (
            f"whose method {method.name!r} compares a patient with training subjects in a graph: their features would "
            "have to leave with the model; name a variant without a graph."
        )
    if not method.capabilities.model:
        return f"whose method {method.name!r} keeps no model; name a linear model or a multilayer perceptron."
    without = {
        key: value for key, value in method.capabilities.without_model.items() if variant.settings.get(key) == value
    }
    return f"which keeps no model under `{_written(without)}`; change that setting." if without else ""


def _of_features(variant: Variant) -> str:
    stage = variant.stage("features")
    assert stage is not None
    settings = stage.settings
    if settings.views:
        return "whose features have several views; name a variant of connectivity alone."
    needs = {
        "kind": (settings.kind, "connectivity"),
        "harmonise": (settings.harmonise, "none"),
        "selection": (settings.selection, "none"),
    }
    differs = {key: value for key, (value, plain) in needs.items() if value != plain}
    if differs:
        return (
            f"whose features have `{_written(differs)}`: a new patient brings region series alone; name a variant "
            "without it."
        )
    return ""


def _written(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}: {value}" for key, value in values.items())
