"""Checks of figures of experiments: what each kind of figure needs of its variants and cohorts."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from brainfed.cohort.settings import CohortSettings, SplitSettings
from brainfed.configuration import ExperimentSettings, nearest
from brainfed.configuration.planning._experiments import Definitions, Variant
from brainfed.configuration.stages import Stage
from brainfed.configuration.stages.graphs import trained_by
from brainfed.methods import METHODS, Method
from brainfed.runtime import UserError

AXES = {"line": 1, "rounds": 1, "surface": 2}
"""Number of swept settings on the axes of a figure."""
NUMBERED = ("rounds", "surface")
"""Figures with numeric axes; a line may also have words on its axis."""
CLIENTS_AXIS = "split.count"
LOWER, UPPER = "fedgcn", "centralgcn"
"""Methods with exactly one variant in the figure `dose`: the cut graph without generated nodes, and pooled data."""


def check_figure(
    where: str,
    settings: ExperimentSettings,
    variants: Sequence[Variant],
    split: SplitSettings,
    swept: Mapping[str, Sequence[Any]],
    cohorts: Mapping[str, CohortSettings],
) -> None:
    """Reject, before hours of training, a figure that could not be drawn.

    `where` names the experiment in messages, `swept` are the swept keys of its split with their values, `cohorts` its
    cohorts by name.

    Raises:
        UserError: too few or too many axes, one that the variants or splits do not sweep, or no variant with the
            contents of the figure.
    """
    kind = settings.figure
    if kind == "clients":
        _check_clients(where, settings, split, swept)
    else:
        if kind == "dose":
            _check_dose(where, settings, variants, cohorts)
        else:
            _check_axes(where, settings, variants)
        if swept and kind != "none":
            raise UserError(
                f"{where}.figure: expected clients or none for a sweep of splits ({', '.join(swept)}), found {kind}, "
                "which is of one split; change it."
            )
    if kind == "distribution" and not any(variant.stage("fused") for variant in variants):
        raise UserError(
            f"{where}.figure: `distribution` is of generated nodes, which no variant has; add one that has."
        )
    if kind == "readings" and len({variant.method.name for variant in variants}) == len(variants):
        raise UserError(
            f"{where}.figure: `readings` compares settings of one method, found no method with two variants; add one."
        )
    if kind == "fidelity" and not any(map(knows_truth, variants)):
        raise UserError(
            f"{where}.figure: `fidelity` needs a variant of FedNI with `graph: {{scope: global_cut}}`; add one."
        )


def knows_truth(variant: Variant) -> bool:
    """Whether the true neighbours of a variant's generated nodes are known and have a phenotype."""
    fused = variant.stage("fused")
    if fused is None:
        return False
    generates = trained_by(fused.parent("inpainting")).name == "fedni" and fused.settings.nodes == "generated"
    return generates and bool(fused.parent("graph").settings.scope == "global_cut")


def scopes_of(variants: Sequence[Variant]) -> tuple[Stage | None, Stage | None]:
    """The graph that is cut between institutions, and the same built inside each (`graph.scope`); None if absent.

    Of several cut graphs, the first with both scopes.
    """
    graphs = [graph for each in variants if (graph := each.stage("graph")) is not None and not graph.settings.shuffle]
    cut = [graph for graph in graphs if graph.settings.scope == "global_cut"]
    for graph in cut:
        alone = replace(graph.settings, scope="local")
        for own in graphs:
            if own.settings == alone and own.parents == graph.parents:
                return graph, own
    return (cut[0] if cut else None), None


def _check_clients(
    where: str, settings: ExperimentSettings, split: SplitSettings, swept: Mapping[str, Sequence[Any]]
) -> None:
    """Check that the split sweeps the number of random institutions alone."""
    if set(swept) != {"count"} or len(swept["count"]) < 2:
        sweep = ", ".join(f"{key} {list(values)}" for key, values in swept.items())
        raise UserError(
            f"{where}.figure: `clients` compares numbers of institutions, found a sweep of {sweep or 'nothing'}; "
            f"give two values or more in {where}.split.count, and one in every other key."
        )
    if not split.counts_institutions:
        raise UserError(
            f"{where}.split.count: it counts with `institutions: random` or `consecutive` and `validation: folds` or "
            "`holdout` alone, which `clients` needs; choose those."
        )
    if any(axis != CLIENTS_AXIS for axis in settings.axes):
        raise UserError(
            f"{where}.axes: `clients` is drawn against {CLIENTS_AXIS}, found {', '.join(settings.axes)}; change it."
        )


def _check_axes(where: str, settings: ExperimentSettings, variants: Sequence[Variant]) -> None:
    """Check that the figure gets its number of axes, each with at least two values among the variants."""
    kind = settings.figure
    needed = AXES.get(kind, 0)
    if needed and len(set(settings.axes)) != needed:
        raise UserError(
            f"{where}.axes: a figure of the kind {kind!r} is drawn against {needed} swept setting(s), found "
            f"{len(set(settings.axes))}; name as many."
        )
    allowed = set[str]().union(*map(_settings_of, variants))
    for axis in settings.axes:
        if axis.startswith("split."):
            raise UserError(f"{where}.axes: {axis!r} is of the figure `clients`, found {kind!r}; change either.")
        if axis not in allowed:
            raise UserError(f"{where}.axes: no variant has the setting {axis!r}{nearest(axis, sorted(allowed))}")
        if needed:
            _check_values(where, kind, axis, variants)


def _check_values(where: str, kind: str, axis: str, variants: Sequence[Variant]) -> None:
    """Check that variants of one method differ in the setting, in numbers if the figure needs numbers."""
    of_method: dict[str, list[Any]] = {}
    for variant in variants:
        if (value := _settings_of(variant).get(axis)) is not None:
            of_method.setdefault(variant.method.name, []).append(value)
    words = [value for values in of_method.values() for value in values if not isinstance(value, int | float)]
    if kind in NUMBERED and words:
        raise UserError(
            f"{where}.axes: {axis!r} has the value {words[0]!r}, {kind!r} is drawn against numbers; name another."
        )
    if all(len(set(map(str, values))) < 2 for values in of_method.values()):
        raise UserError(
            f"{where}.axes: expected variants of one method that differ in {axis!r}, found one value a method; name "
            "a swept setting, or sweep this one."
        )


def _settings_of(variant: Variant) -> dict[str, Any]:
    """Every setting of a variant; stage settings have the prefix of their key."""
    stages = variant.stage_settings().items()
    return {f"{stage}.{key}": value for stage, values in stages for key, value in values.items()} | variant.settings


# The figure `dose`: simulated cohorts with one dose each, and the two ends of the gap.


def _check_dose(
    where: str, settings: ExperimentSettings, variants: Sequence[Variant], cohorts: Mapping[str, CohortSettings]
) -> None:
    """Check that the cohorts are simulations that differ in one number, and that both ends of the gap are there."""
    real = [name for name, cohort in cohorts.items() if cohort.source != "simulate"]
    if real:
        raise UserError(
            f"{where}.figure: `dose` compares simulated cohorts, found {real[0]!r} with source "
            f"{cohorts[real[0]].source!r}; leave it out of {where}.cohorts."
        )
    contents = {name: asdict(cohort) for name, cohort in cohorts.items()}
    simulations = {name: content.pop("simulate") for name, content in contents.items()}
    numbers = [
        f"simulate.{key}"
        for key, value in next(iter(simulations.values())).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    if len(settings.axes) != 1 or settings.axes[0] not in numbers:
        axes = ", ".join(settings.axes) or "none"
        raise UserError(
            f"{where}.axes: expected one number of the simulation for the figure `dose`, found {axes}"
            f"{nearest(settings.axes[0] if settings.axes else 'simulate.group_agreement', sorted(numbers))}"
        )
    axis = settings.axes[0].removeprefix("simulate.")
    doses = {name: simulation.pop(axis) for name, simulation in simulations.items()}
    if len(set(doses.values())) < max(2, len(doses)):
        pairs = ", ".join(f"{name} {value}" for name, value in doses.items())
        raise UserError(
            f"{where}.cohorts: `dose` needs two cohorts or more, each with its own value of simulate.{axis}, found "
            f"{pairs}; change one."
        )
    first, *others = simulations
    for name in others:
        differs = [f"simulate.{key}" for key, value in simulations[name].items() if value != simulations[first][key]]
        differs += [key for key, value in contents[name].items() if value != contents[first][key]]
        if differs:
            raise UserError(
                f"{where}.figure: `dose` compares cohorts that differ in {axis} alone, found {first!r} and {name!r} "
                f"with different {differs[0]}; give both the same."
            )
    for method in (LOWER, UPPER):
        named = [variant.name for variant in variants if variant.method.name == method]
        if len(named) != 1:
            raise UserError(
                f"{where}.variants: `dose` measures shares of the gap between one variant of fedgcn and one of "
                f"centralgcn, found {', '.join(named) or 'none'} of {method}; name one."
            )
    _check_new_nodes(where, variants)


def _check_new_nodes(where: str, variants: Sequence[Variant]) -> None:
    """Check that new nodes replace subjects that a cut removed from the graph of the lower end of the gap."""
    (cut,) = (variant.stages["graph"] for variant in variants if variant.method.name == LOWER)
    if cut.settings.scope != "global_cut":
        raise UserError(
            f"{where}.variants: `dose` measures what a cut costs, found a fedgcn with graph.scope: "
            f"{cut.settings.scope}; use global_cut."
        )
    generating = [variant for variant in variants if variant.stage("fused")]
    for variant in generating:
        if variant.stages["graph"].name != cut.name:
            raise UserError(
                f"{where}.variants: `dose` compares new nodes in one graph, found {variant.name!r} with another graph "
                "than fedgcn; give both the same `graph` and `features`."
            )
    if not generating:
        raise UserError(
            f"{where}.variants: expected a variant with new nodes for `dose`, found none; add fedni or another."
        )


# What an experiment on a cohort of public graphs may have: methods that read them, and institutions that fit them.


def takes_graphs(method: Method) -> bool:
    """Whether a method reads nothing but whole graphs and labels."""
    return method.needs == ("connectomes",) or method.name == "majority"


def refuse_other_than_graphs(
    where: str,
    name: str,
    cohort: CohortSettings,
    split: SplitSettings,
    variants: Sequence[Variant],
    definitions: Definitions,
) -> None:
    """Refuse what has no meaning for the cohort of graphs `name`.

    Raises:
        UserError: a method reads features or phenotypes, a variant has settings of connectomes, or data sets with other
            features and classes are pooled.
    """
    several = len(cohort.tudataset.names) > 1
    if several and (split.institutions != "sites" or split.validation == "leave_one_site_out"):
        raise UserError(
            f"{where}.split: expected `institutions: sites` and no site left out for cohort {name!r}, whose data sets "
            f"differ in features and classes, found institutions: {split.institutions}, validation: "
            f"{split.validation}; change it, or name one data set in the cohort."
        )
    for variant in variants:
        if not takes_graphs(variant.method):
            able = ", ".join(method.name for method in METHODS.values() if takes_graphs(method))
            raise UserError(
                f"{where}: expected variants that classify graphs for cohort {name!r}, whose source is 'tudataset', "
                f"found {variant.name!r}; choose among the methods {able}, or name other `cohorts` in the experiment."
            )
        if several and variant.method.needs and variant.method.topology == "central":
            raise UserError(
                f"{where}: expected no training on pooled data for cohort {name!r}, whose data sets differ in "
                f"features and classes, found {variant.name!r}; remove it, or name one data set in the cohort."
            )
        idle = [key for key in ("connectomes", "features") if definitions.single[variant.name].get(key)]
        if idle:
            raise UserError(
                f"variants.{variant.name}.{idle[0]}: expected none for cohort {name!r}, whose graphs are made already, "
                "found some; remove the key, or name other `cohorts` in the experiment."
            )
