"""Outline of a whole report for `reporting.outline`, and its files; builtins only."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from brainfed.configuration.layout.at_a_site import sets_added_up
from brainfed.configuration.layout.cohort_inputs import CohortInputs
from brainfed.configuration.layout.layout import Layout
from brainfed.configuration.layout.paths import cohort_file
from brainfed.configuration.outline.experiment import experiment_outline
from brainfed.configuration.outline.figure_names import figures_of
from brainfed.configuration.outline.graphs import graph_experiment, scopes_experiment
from brainfed.configuration.planning.experiments import Experiment
from brainfed.configuration.planning.plan import Plan
from brainfed.configuration.targets import config_of, reports_of

JOBS_THAT_COMPARE = ("scans", "included")


def cohort_outline(layout: Layout, inputs: CohortInputs, experiments: Sequence[Experiment]) -> dict[str, Any]:
    """The fields of `reporting.outline.CohortOutline`: one cohort and its experiments among these."""
    cohort, settings, listing = inputs.name, inputs.settings, inputs.listing
    has_graphs = graph_experiment(layout.plan, cohort) is not None and any(
        variant.stage("graph") for experiment in experiments for variant in experiment.variants
    )
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
    """The way of the subjects that issues name, to their scores in the cohort's first experiment on the page."""
    shown = [experiment.name for experiment in experiments if cohort in experiment.cohorts]
    allowed = layout.plan.project.report.show_subjects and shown
    return f"results/{cohort}/tables/{shown[0]}-subjects.json" if allowed else ""


def report_outline(layout: Layout, cohorts: Mapping[str, CohortInputs], page: str) -> dict[str, Any]:
    """The fields of `reporting.outline.ReportOutline`: all contents of a page."""
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
