"""The graphs of a cohort that figures draw, and those that explain the scopes of a graph."""

from collections.abc import Sequence

from brainfed.configuration.layout.layout import Layout
from brainfed.configuration.layout.paths import split_file
from brainfed.configuration.planning.experiments import Experiment
from brainfed.configuration.planning.figures import scopes_of
from brainfed.configuration.planning.plan import Plan


def graph_experiment(plan: Plan, cohort: str) -> Experiment | None:
    """The experiment that provides the drawn graphs: the first of a default run, else one with the fewest repeats."""
    shown = [
        experiment
        for experiment in plan.experiments.values()
        if cohort in experiment.cohorts and any(variant.stage("graph") for variant in experiment.variants)
    ]
    return min(
        shown,
        key=lambda experiment: (not experiment.default, 0 if experiment.default else experiment.repeats),
        default=None,
    )


def drawn_graphs(layout: Layout, cohort: str) -> list[tuple[str, str, str]]:
    """(stage, graph, split) of the drawn experiment: every repeat, graphs inside institutions first."""
    experiment = graph_experiment(layout.plan, cohort)
    if experiment is None:
        return []
    held = [graph for variant in experiment.variants if (graph := variant.stage("graph")) is not None]
    ordered = sorted(
        {graph.name: graph for graph in held}.values(),
        key=lambda graph: (graph.settings.shuffle, graph.settings.scope == "global"),
    )
    return [
        (graph.name, layout.files_of(graph, cohort, repeat)[0], split_file(cohort, graph.split, repeat))
        for graph in ordered
        for repeat in range(experiment.repeats)
    ]


def scope_inputs(layout: Layout, experiment: Experiment, cohort: str) -> dict[str, str | list[str]]:
    """Files of the first repeat: the cut graph, the institutions' own graphs if any, their split."""
    cut, own = scopes_of(experiment.variants)
    assert cut is not None, f"{experiment.name} cuts no graph"
    return {
        "cut": layout.files_of(cut, cohort, 0)[0],
        "own": layout.files_of(own, cohort, 0)[:1],
        "split": split_file(cohort, cut.split, 0),
    }


def scopes_experiment(plan: Plan, cohort: str, experiments: Sequence[Experiment]) -> Experiment | None:
    """The experiment that provides the graphs of the scopes: one with both, else that of the other figures."""
    shown = [experiment for experiment in experiments if cohort in experiment.cohorts]
    of_graphs = graph_experiment(plan, cohort)
    candidates = [
        *(one for one in shown if all(scopes_of(one.variants))),
        *([of_graphs] if of_graphs else []),
    ]
    return next((one for one in candidates if scopes_of(one.variants)[0]), None)


def experiments_that_cut(plan: Plan) -> list[str]:
    """The experiments with a graph that is cut between institutions."""
    return [name for name, experiment in plan.experiments.items() if scopes_of(experiment.variants)[0]]
