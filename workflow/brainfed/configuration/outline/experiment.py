"""Outline of one experiment of a cohort, or of a figure of the paper; builtins only."""

from dataclasses import asdict
from typing import Any

from brainfed.configuration.layout.layout import Layout
from brainfed.configuration.outline.clusters import clustered_variants
from brainfed.configuration.outline.figure_names import CLUSTERS, EXPERIMENT_FIGURES, LEAKAGE, PATTERNS
from brainfed.configuration.outline.patterns import explained_variants
from brainfed.configuration.outline.variant import variant_outline
from brainfed.configuration.planning.experiments import Experiment
from brainfed.configuration.planning.plan import Plan
from brainfed.configuration.targets import swept_split


def experiment_outline(layout: Layout, cohort: str, experiment: Experiment) -> dict[str, Any]:
    """The fields of `reporting.outline.ExperimentOutline`."""
    tables = f"results/{cohort}/tables/{experiment.name}"
    explained = ("patterns", "planted", "views") if explained_variants(experiment) else ()
    clustered = ("clients",) if clustered_variants(experiment) else ()
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
            "runs": f"{tables}-runs.tsv",
            "tests": f"{tables}-tests.tsv",
            "gain": f"{tables}-gain.tsv",
            "confusion": f"{tables}-confusion.tsv",
            "audit": f"{tables}-audit.tsv",
            **{name: f"{tables}-{name}.tsv" for name in (*explained, *clustered)},
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
    return sorted({one.group for one in plan.experiments.values() if one.settings.figure == kind})


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
