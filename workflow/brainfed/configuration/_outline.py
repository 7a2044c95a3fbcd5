"""What the report reads: the files of a cohort, of an experiment and of a variant, as one document."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from brainfed.cohort.settings import CohortSettings
from brainfed.configuration._counterparts import counterparts_of, find_counterparts, topology_of
from brainfed.configuration._loading import config_of, reports_of, shipped_settings, swept_split
from brainfed.configuration.layout import (
    CohortInputs,
    Layout,
    beside,
    cohort_file,
    result_files,
    sets_added_up,
    split_file,
    timing_of,
)
from brainfed.configuration.planning import Experiment, Plan, Variant, knows_truth, scopes_of
from brainfed.configuration.stages import Stage, registry


def ledger_variants(layout: Layout, cohort: str, experiment: Experiment) -> list[dict[str, Any]]:
    """Fields of the variants of an experiment for figures of scores against traffic.

    `costs` and `inpainting` name the ledgers of the first repeat alone.
    """
    fields = []
    for variant in experiment.variants:
        whole = variant_outline(layout, cohort, experiment, variant)
        generators = whole["inpainting"]["costs"][:1]
        ledgers = {"costs": whole["costs"][:1], "inpainting": {"costs": generators} if generators else {}}
        fields.append(shown_variant(variant, experiment) | ledgers)
    return fields


def experiments_with(plan: Plan, wanted: Callable[[Experiment], object]) -> list[str]:
    """Names of the experiments for which `wanted` returns something: variants to cluster, a graph to cut."""
    return [name for name, experiment in plan.experiments.items() if wanted(experiment)]


def clustered_variants(experiment: Experiment) -> list[Variant]:
    """The variants whose server parts the institutions into clusters, in the order of the config."""
    return [variant for variant in experiment.variants if variant.method.capabilities.clusters]


def local_counterparts(experiment: Experiment) -> dict[str, str]:
    """Federated variant -> the same model trained in every institution alone, for those that have it."""
    return {name: sides["alone"] for name, sides in counterparts_of(experiment).items() if "alone" in sides}


# Names of the figures of a cohort, of its graphs, of an experiment, and of the paper.

COHORT_FIGURES = ("flow", "sites", "ages", "series", "motion", "quality")
MEASURED_COHORT_FIGURES = ("flow", "sites", "ages")
"""Figures of a cohort without scans: FreeSurfer's measures have no time points."""

CONNECTIVITY_FIGURES = ("means", "effects", "strongest")
MEASURE_FIGURES = ("measures",)
GRAPH_COHORT_FIGURES = ("sizes",)
"""Figures of a cohort of graphs, which have no age, no sex and no scan."""
GRAPH_FIGURES = ("graph", "homophily", "degrees")
EXPERIMENT_FIGURES = (
    "headline", "forest", "differences", "roc", "calibration", "confusion", "operating", "subgroups", "traffic", "gain",
    "learning",
)  # fmt: skip
LEAKAGE = "leakage"
"""Figure of every experiment: score, leakage and traffic."""
PATTERNS = "patterns"
"""Figure of an experiment with a linear model that leaves patterns behind."""
CLUSTERS = "clusters"
"""Figure of an experiment with a variant whose server parts the institutions into clusters."""
PAPER_FIGURES = {
    "bars": "scores side by side",
    "line": "scores against a setting",
    "surface": "scores against two settings",
    "rounds": "loss and accuracy by round",
    "distribution": "real and generated features",
    "clients": "scores against the number of institutions",
    "cost": "what training takes",
    "fidelity": "generated and true neighbours",
    "dose": "scores against the dose of a simulation",
    "readings": "readings of the paper",
}


def figures_of(kind: str, graphs: bool) -> list[str]:
    """The figures of a cohort with this kind of features; `graphs`: whether its population graphs are drawn."""
    if kind == "graphs":
        return [*GRAPH_COHORT_FIGURES]
    of_scans = (*COHORT_FIGURES, *CONNECTIVITY_FIGURES)
    own = of_scans if kind == "connectivity" else (*MEASURED_COHORT_FIGURES, *MEASURE_FIGURES)
    return [*own, *(GRAPH_FIGURES if graphs else ())]


# The graphs of a cohort that figures draw, and those that explain the scopes of a graph.


def graph_experiment(plan: Plan, cohort: str) -> Experiment | None:
    """The experiment that provides the drawn graphs: the first of a default run, else one with the fewest repeats."""
    shown = [each for each in plan.experiments.values() if cohort in each.cohorts and _has_graphs([each])]
    return min(shown, key=lambda each: (not each.default, 0 if each.default else each.repeats), default=None)


def _has_graphs(experiments: Sequence[Experiment]) -> bool:
    return any(variant.stage("graph") for experiment in experiments for variant in experiment.variants)


def drawn_graphs(layout: Layout, cohort: str) -> list[tuple[str, str, str]]:
    """(stage, graph, split) of the drawn experiment: every repeat, graphs inside institutions first."""
    experiment = graph_experiment(layout.plan, cohort)
    if experiment is None:
        return []
    graphs = {graph.name: graph for variant in experiment.variants if (graph := variant.stage("graph"))}
    ordered = sorted(graphs.values(), key=lambda graph: (graph.settings.shuffle, graph.settings.scope == "global"))
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
    candidates = [*(each for each in shown if all(scopes_of(each.variants))), graph_experiment(plan, cohort)]
    return next((each for each in candidates if each and cuts(each)), None)


def cuts(experiment: Experiment) -> bool:
    """Whether an experiment has a graph that is cut between institutions."""
    return scopes_of(experiment.variants)[0] is not None


# The linear models of an experiment with a shown pattern, and what the job that shows it reads.

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


def truth_file(cohort: str, settings: CohortSettings) -> str | list[str]:
    """The planted connections of a simulated cohort of two classes; empty for any other."""
    planted = settings.source == "simulate" and not settings.classes
    return f"results/{cohort}/simulated/truth.json" if planted else []


def shown_variant(variant: Variant, experiment: Experiment) -> dict[str, Any]:
    """Fields of a variant in a figure."""
    return {
        "name": variant.name,
        "method": variant.method.name,
        "method_title": variant.method.title,
        "family": variant.method.family,
        "topology": topology_of(variant),
        "counterparts": find_counterparts(variant, experiment.variants),
        "clusters": variant.method.capabilities.clusters,
        "settings": variant.settings,
        "shipped": shipped_settings(variant.method),
        "stages": variant.stage_settings(),
    }


def variant_outline(layout: Layout, cohort: str, experiment: Experiment, variant: Variant) -> dict[str, Any]:
    """Fields of a variant in a report, and the files of its results and stages."""

    def own(name: str) -> list[str]:
        return result_files(cohort, experiment, name, [variant])

    files = {
        kind.name: layout.files_of_repeats(variant.stage(kind.name), cohort, experiment.repeats)
        for kind in registry.KINDS
    }
    shown = shown_variant(variant, experiment)
    return {
        **shown,
        "counterparts": _possible(shown["counterparts"], layout, cohort, experiment),
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
    counterparts: dict[str, dict[str, Any]], layout: Layout, cohort: str, experiment: Experiment
) -> dict[str, dict[str, Any]]:
    """The counterparts, without advice to pool data sets of graphs that differ in features and classes.

    A site of a study has no pooled data, and only the coordinator adds a variant. One that is left out has no model of
    its own.
    """
    if layout.plan.project.study.site:
        missing = counterparts.get("alone", {}).get("missing", "")
        advised = f"the coordinator adds {missing.removeprefix('add ')} to the study before it begins"
        if experiment.regime.unseen:
            advised = "a site that is left out has no model of its own"
        return {
            side: counterpart | {"missing": advised} if missing.startswith("add ") else counterpart
            for side, counterpart in counterparts.items()
            if side == "alone"
        }
    if len(layout.plan.project.cohorts[cohort].tudataset.names) < 2:
        return counterparts
    reason = "data sets that differ in features and classes cannot be pooled"
    return {
        side: counterpart | {"missing": reason} if side == "pooled" and counterpart["missing"] else counterpart
        for side, counterpart in counterparts.items()
    }


def _timings(layout: Layout, cohort: str, experiment: Experiment, stage: Stage | None) -> list[str]:
    """Timings of what a split needs of a stage, and of the features that it joins or starts from."""
    if stage is None or layout.has_graphs(cohort):
        return []
    needed = [own for own in (*stage.parents, stage) if own.kind is stage.kind and own.split]
    files = (path for own in needed for path in layout.files_of_repeats(own, cohort, experiment.repeats))
    return list(dict.fromkeys(map(timing_of, files)))


def _fidelity(cohort: str, experiment: Experiment, variant: Variant) -> list[str]:
    """Fidelity of generated neighbours, in an experiment with that figure, if the true neighbours are known."""
    if experiment.settings.figure != "fidelity" or not knows_truth(variant):
        return []
    name = variant.stages["fused"].name
    return [f"results/{cohort}/fidelity/{name}/repeat-{repeat}.json" for repeat in range(experiment.repeats)]


def experiment_outline(layout: Layout, cohort: str, experiment: Experiment) -> dict[str, Any]:
    """The fields of `reporting.ExperimentOutline`."""
    tables = f"results/{cohort}/tables/{experiment.name}"
    further = ["patterns", "planted", "views"] if explained_variants(experiment) else []
    further += ["clients"] if clustered_variants(experiment) else []
    labels = layout.labels_beside(cohort, experiment)
    return {
        "name": experiment.name,
        "cohort": cohort,
        "group": experiment.group if swept_split(layout.plan, experiment) else "",
        "title": _title(layout.plan, experiment),
        "figure": experiment.settings.figure,
        "axes": list(experiment.settings.axes),
        "paper": experiment.settings.paper,
        "protocol": experiment.regime.protocol,
        "labels": experiment.regime.labels,
        "reference": experiment.settings.reference,
        "repeats": experiment.repeats,
        "split": asdict(experiment.split),
        "splits": layout.splits(cohort, experiment),
        **({"participants": labels[0]} if labels else {}),
        **({} if layout.plan.project.cohorts[cohort].one_task else {"pooled": False}),
        "tables": {
            "summary": f"{tables}.tsv",
            **{name: f"{tables}-{name}.tsv" for name in ("runs", "tests", "gain", "confusion", "audit", *further)},
        },
        "figures": _figures(cohort, experiment),
        "variants": [variant_outline(layout, cohort, experiment, variant) for variant in experiment.variants],
    }


def figure_outline(layout: Layout, cohort: str, name: str) -> dict[str, Any]:
    """The experiment of a figure. A sweep of splits lists its experiments as `members`; the figure `dose` lists its
    cohorts with their simulations.
    """
    experiments = layout.plan.group(name)
    if experiments[0].settings.figure == "dose":
        members = [
            experiment_outline(layout, member, experiments[0])
            | {"figures": {}, "simulate": asdict(layout.plan.project.cohorts[member].simulate)}
            for member in experiments[0].cohorts
        ]
        return members[0] | {"members": members}
    outlines = [experiment_outline(layout, cohort, experiment) | {"figures": {}} for experiment in experiments]
    members = outlines if swept_split(layout.plan, experiments[0]) else []
    return outlines[0] | {"name": name, "members": members}


def groups_drawn_as(plan: Plan, kind: str) -> list[str]:
    """The experiments with a figure of this kind; a sweep counts as one."""
    return sorted({each.group for each in plan.experiments.values() if each.settings.figure == kind})


def _title(plan: Plan, experiment: Experiment) -> str:
    """The title in the config; in a sweep of splits followed by the swept values."""
    title = experiment.settings.title or experiment.group
    swept = ", ".join(f"{key} = {value}" for key, value in swept_split(plan, experiment).items())
    return f"{title} ({swept})" if swept else title


def _figures(cohort: str, experiment: Experiment) -> dict[str, str]:
    """Name -> picture; a figure over several cohorts belongs to the first of them."""
    folder, kind = f"results/{cohort}/figures", experiment.settings.figure
    explained = (PATTERNS,) if explained_variants(experiment) else ()
    clustered = (CLUSTERS,) if clustered_variants(experiment) else ()
    names = (*EXPERIMENT_FIGURES, LEAKAGE, *explained, *clustered)
    drawn = {name: f"{folder}/{experiment.name}/{name}.svg" for name in names}
    if kind != "none" and (kind != "dose" or cohort == experiment.cohorts[0]):
        drawn[kind] = f"{folder}/{experiment.group}/{kind}.svg"
    return drawn


JOBS_THAT_COMPARE = ("scans", "included")


def cohort_outline(layout: Layout, inputs: CohortInputs, experiments: Sequence[Experiment]) -> dict[str, Any]:
    """The fields of `reporting.CohortOutline`: one cohort and its experiments among these."""
    cohort, settings, listing = inputs.name, inputs.settings, inputs.listing
    has_graphs = graph_experiment(layout.plan, cohort) is not None and _has_graphs(experiments)
    folder = f"results/{cohort}/figures"
    drawn = {name: f"{folder}/{name}.svg" for name in figures_of(settings.kind, has_graphs)}
    scopes = scopes_experiment(layout.plan, cohort, experiments) if has_graphs else None
    if scopes is not None:
        drawn["scopes"] = f"{folder}/{scopes.name}/scopes.svg"
    summary = {"connectivity": "connectivity", "morphometry": "measures", "graphs": "graphs"}[settings.kind]
    return {
        "name": cohort,
        "source": settings.source,
        "target": settings.target,
        "classes": list(settings.classes),
        "kind": settings.kind,
        "condition": settings.condition,
        "modality": settings.modality,
        "followed": _followed(layout, cohort, experiments) if settings.kind != "graphs" else "",
        "atlas": listing.atlas,
        "parcellation": listing.parcellation or "",
        "participants": cohort_file(cohort, "participants.parquet"),
        "included": cohort_file(cohort, "included.parquet"),
        "issues": cohort_file(cohort, "issues.tsv"),
        "measures": cohort_file(cohort, "quality.parquet"),
        "connections": cohort_file(cohort, "qc-fc.parquet"),
        "crossings": [cohort_file(cohort, f"{job}-crossings.json") for job in JOBS_THAT_COMPARE],
        "flag": asdict(settings.flag),
        "connectivity": f"{folder}/{summary}.json",
        "site_trace": f"{folder}/site-trace.tsv" if has_graphs else "",
        "quality": inputs.shard_files("-quality.parquet"),
        "figures": drawn,
        "experiments": [
            experiment_outline(layout, cohort, experiment) for experiment in experiments if cohort in experiment.cohorts
        ],
    }


def _followed(layout: Layout, cohort: str, experiments: Sequence[Experiment]) -> str:
    """The table that follows the subjects with issues to their scores in the cohort's first experiment on the page."""
    shown = [experiment.name for experiment in experiments if cohort in experiment.cohorts]
    allowed = layout.plan.project.report.show_subjects and shown
    return f"results/{cohort}/tables/{shown[0]}-subjects.json" if allowed else ""


def report_outline(layout: Layout, cohorts: Mapping[str, CohortInputs], page: str) -> dict[str, Any]:
    """The fields of `reporting._outline.ReportOutline`: all contents of a page."""
    plan, project = layout.plan, layout.plan.project
    experiments = [plan.experiments[name] for name in reports_of(plan)[page]]
    shown = [
        cohort
        for cohort in project.cohorts
        if page == project.project or any(cohort in experiment.cohorts for experiment in experiments)
    ]
    return {
        "project": project.project,
        "title": project.report.title or project.project,
        "show_subjects": project.report.show_subjects,
        "seed": project.seed,
        "config": config_of(plan, experiments),
        "cohorts": [cohort_outline(layout, cohorts[cohort], experiments) for cohort in shown],
        **({"study": _shared_study(plan)} if project.study.site else {}),
    }


def _shared_study(plan: Plan) -> dict[str, Any]:
    study = plan.project.study
    sets = sets_added_up(plan.experiments.values(), len(study.sites))
    return {"sites": list(study.ordered), "site": study.site, "sets": sets}


def outline_files(outline: Any) -> list[str]:
    """All files under `results/` in an outline."""
    if isinstance(outline, Mapping):
        outline = list(outline.values())
    if isinstance(outline, list | tuple):
        return [path for child in outline for path in outline_files(child)]
    return [outline] if str(outline).startswith("results/") else []


def report_files(outline: Mapping[str, Any]) -> list[str]:
    """All artefacts, tables and figures of a report, and the images of its parcellations, each once."""
    parcellations = [cohort["parcellation"] for cohort in outline["cohorts"] if cohort["parcellation"]]
    return list(dict.fromkeys([*outline_files(outline["cohorts"]), *parcellations]))
