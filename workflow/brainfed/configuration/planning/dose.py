"""Checks of the figure `dose`: simulated cohorts with one dose each, and the two ends of the gap."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.configuration.planning.experiments import Variant
from brainfed.configuration.project import ExperimentSettings
from brainfed.configuration.validation import nearest
from brainfed.runtime.errors import UserError

BETWEEN = ("fedgcn", "centralgcn")
"""Methods with exactly one variant in the figure: the cut graph without generated nodes, and pooled data."""


def check_dose(
    where: str, settings: ExperimentSettings, variants: Sequence[Variant], cohorts: Mapping[str, CohortSettings]
) -> None:
    """Reject the figure `dose` unless its cohorts are doses of one simulation.

    Args:
        where: name of the experiment in messages.
        settings: the experiment's settings in the config.
        variants: its variants.
        cohorts: its cohorts by name.

    Raises:
        UserError: a cohort is not simulated, two have the same dose or differ in more than the dose, the axis is no
            number of the simulation, an end of the gap does not have exactly one variant, or no variant has new nodes.
    """
    real = [name for name, cohort in cohorts.items() if cohort.source != "simulate"]
    if real:
        raise UserError(
            f"{where}.figure: `dose` compares simulated cohorts, found {real[0]!r} with source "
            f"{cohorts[real[0]].source!r}; leave it out of {where}.cohorts."
        )
    contents = {name: asdict(cohort) for name, cohort in cohorts.items()}
    simulations = {name: content.pop("simulate") for name, content in contents.items()}
    numbers = {
        f"simulate.{key}"
        for key, value in next(iter(simulations.values())).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    if len(settings.axes) != 1 or settings.axes[0] not in numbers:
        found = ", ".join(settings.axes) or "none"
        raise UserError(
            f"{where}.axes: expected one number of the simulation for the figure `dose`, found {found}"
            f"{nearest(settings.axes[0] if settings.axes else 'simulate.group_agreement', sorted(numbers))}"
        )
    axis = settings.axes[0].removeprefix("simulate.")
    _check_doses(where, axis, {name: simulation.pop(axis) for name, simulation in simulations.items()})
    first, *others = simulations
    for name in others:
        differs = [f"simulate.{key}" for key, value in simulations[name].items() if value != simulations[first][key]]
        differs += [key for key, value in contents[name].items() if value != contents[first][key]]
        if differs:
            raise UserError(
                f"{where}.figure: `dose` compares cohorts that differ in {axis} alone, found {first!r} and {name!r} "
                f"with different {differs[0]}; give both the same."
            )
    for method in BETWEEN:
        held = [variant.name for variant in variants if variant.method.name == method]
        if len(held) != 1:
            raise UserError(
                f"{where}.variants: `dose` measures shares of the gap between one variant of fedgcn and one of "
                f"centralgcn, found {', '.join(held) or 'none'} of {method}; name one."
            )
    _check_cut(where, variants)
    if not any(variant.stage("fused") for variant in variants):
        raise UserError(
            f"{where}.variants: expected a variant with new nodes for `dose`, found none; add fedni or another."
        )


def _check_cut(where: str, variants: Sequence[Variant]) -> None:
    """Check that new nodes replace subjects that a cut removed from the graph of the lower end of the gap."""
    (cut,) = (variant.stages["graph"] for variant in variants if variant.method.name == BETWEEN[0])
    if cut.settings.scope != "global_cut":
        raise UserError(
            f"{where}.variants: `dose` measures what a cut costs, found a fedgcn with graph.scope: "
            f"{cut.settings.scope}; use global_cut."
        )
    for variant in variants:
        if variant.stage("fused") and variant.stages["graph"].name != cut.name:
            raise UserError(
                f"{where}.variants: `dose` compares new nodes in one graph, found {variant.name!r} with another graph "
                "than fedgcn; give both the same `graph` and `features`."
            )


def _check_doses(where: str, axis: str, doses: Mapping[str, float]) -> None:
    """Check that there are at least two cohorts, each with its own dose."""
    if len(set(doses.values())) < max(2, len(doses)):
        found = ", ".join(f"{name} {value}" for name, value in doses.items())
        raise UserError(
            f"{where}.cohorts: `dose` needs two cohorts or more, each with its own value of simulate.{axis}, found "
            f"{found}; change one."
        )
