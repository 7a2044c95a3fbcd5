"""Targets: every experiment, all of the paper's, and each again with one repeat."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from brainfed.configuration.names import PAPER, TWIN
from brainfed.configuration.planning.experiments import Experiment
from brainfed.configuration.planning.plan import Plan
from brainfed.configuration.planning.sweeps import swept_values


def targets_of(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Target -> its experiments: one, a sweep of splits, or all that a plain run leaves out."""
    targets: dict[str, tuple[str, ...]] = {}
    for group in dict.fromkeys(experiment.group for experiment in plan.experiments.values()):
        targets[group] = tuple(experiment.name for experiment in plan.group(group))
    named = [group for group, experiment in plan.project.experiments.items() if not experiment.default]
    for ending in ("", TWIN) if named else ():
        targets[PAPER + ending] = tuple(name for group in named for name in targets[group + ending])
    return targets


def reports_of(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Name of a report -> its experiments: the project's own, and one a target."""
    default = tuple(name for name, experiment in plan.experiments.items() if experiment.default)
    project = plan.project.project
    return {project: default} | {f"{project}-{target}": names for target, names in targets_of(plan).items()}


def config_of(plan: Plan, experiments: Sequence[Experiment]) -> dict[str, Any]:
    """The resolved config with these experiments alone, and with the variants that they name."""
    config = asdict(plan.project)
    shown = {experiment.group.removesuffix(TWIN) for experiment in experiments}
    named = {f"{name}-" for experiment in experiments for name in experiment.settings.variants}
    config["experiments"] = {name: value for name, value in config["experiments"].items() if name in shown}
    config["variants"] = {
        name: value
        for name, value in config["variants"].items()
        if any(member.startswith(f"{name}-") for member in named)
    }
    return config


def swept_split(plan: Plan, experiment: Experiment) -> dict[str, Any]:
    """The swept keys of its group's split, with this experiment's values; empty without a sweep."""
    written = plan.project.experiments[experiment.group.removesuffix(TWIN)].split
    return {key: experiment.settings.split[key] for key in swept_values(written)}
