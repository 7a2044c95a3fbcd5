"""What the report reads, and how its figures are registered for `snakemake --report`."""

CAPTIONS = BASE / "report"
TEMPLATES = BASE / "brainfed" / "reporting" / "templates"
COHORT_FIGURES = ["flow", "sites", "ages", "series", "quality"]
CONNECTIVITY_FIGURES = ["means", "effects", "strongest"]
GRAPH_FIGURES = ["graph", "homophily", "degrees"]
EXPERIMENT_FIGURES = [
    "headline",
    "forest",
    "differences",
    "roc",
    "calibration",
    "gain",
    "learning",
]


def drawn(name, category, title):
    """A figure of a cohort, registered."""
    return report(
        f"results/{{cohort}}/figures/{name}.svg",
        caption=f"../report/{name}.rst",
        category=category,
        subcategory="{cohort}",
        labels={"cohort": "{cohort}", "figure": title},
    )


def drawn_scores(name, title, category="Scores"):
    """A figure of an experiment, registered."""
    return report(
        f"results/{{cohort}}/figures/{{experiment}}/{name}.svg",
        caption=f"../report/{name}.rst",
        category=category,
        subcategory="{cohort}",
        labels={"experiment": "{experiment}", "figure": title},
    )


def shown_variant(variant):
    return {
        "name": variant.name,
        "method": variant.method.name,
        "method_title": variant.method.title,
        "family": variant.method.family,
        "settings": variant.settings,
    }


def atlas_file(wildcards, kind):
    """The parcellation or its region table, where both are known."""
    listing = LISTINGS[wildcards.cohort]
    return getattr(listing, kind) if listing.parcellation and listing.labels else []


def experiments_of(cohort):
    return [
        experiment
        for experiment in PLAN.experiments.values()
        if cohort in experiment.cohorts
    ]


def drawn_graphs(cohort):
    """(stage, graph, split) of the first experiment that has graphs: every repeat, local graphs first."""
    for experiment in experiments_of(cohort):
        stages = {
            variant.graph.name: variant.graph
            for variant in experiment.variants
            if variant.graph
        }
        if stages:
            ordered = sorted(
                stages.values(),
                key=lambda stage: (
                    stage.settings.shuffle,
                    stage.settings.scope != "local",
                ),
            )
            return [
                (
                    stage.name,
                    f"results/{cohort}/graphs/{stage.name}/repeat-{repeat}/{'fold-0' if stage.by_fold else 'all'}.safetensors",
                    f"results/{cohort}/splits/{stage.split}/repeat-{repeat}.parquet",
                )
                for stage in ordered
                for repeat in range(experiment.repeats)
            ]
    return []


def experiment_outline(cohort, experiment):
    """One experiment of a cohort, as the report reads it: builtins only."""
    folder = f"results/{cohort}/methods/{experiment.regime.name}"
    tables = f"results/{cohort}/tables/{experiment.name}"
    return {
        "name": experiment.name,
        "title": experiment.settings.title or experiment.name,
        "protocol": experiment.regime.protocol,
        "labels": experiment.regime.labels,
        "reference": experiment.settings.reference,
        "local": experiment.settings.local,
        "repeats": experiment.repeats,
        "split": asdict(PLAN.splits[experiment.regime.split]),
        "splits": [
            f"results/{cohort}/splits/{experiment.regime.split}/repeat-{repeat}.parquet"
            for repeat in range(experiment.repeats)
        ],
        "tables": {
            "summary": f"{tables}.tsv",
            "runs": f"{tables}-runs.tsv",
            "tests": f"{tables}-tests.tsv",
            "gain": f"{tables}-gain.tsv",
        },
        "figures": {
            name: f"results/{cohort}/figures/{experiment.name}/{name}.svg"
            for name in EXPERIMENT_FIGURES
        },
        "variants": [
            shown_variant(variant)
            | {
                "costs": [
                    f"{folder}/{variant.name}/repeat-{repeat}/cost.json"
                    for repeat in range(experiment.repeats)
                ],
                "timings": [
                    f"{folder}/{variant.name}/repeat-{repeat}/timing.json"
                    for repeat in range(experiment.repeats)
                ],
            }
            for variant in experiment.variants
        ],
    }


def cohort_outline(cohort):
    """One cohort, as the report reads it: builtins only."""
    listing = LISTINGS[cohort]
    parts = [
        f"results/{cohort}/timeseries/{listing.atlas}/{shard}"
        for shard in listing.shards
    ]
    figures = [
        *COHORT_FIGURES,
        *CONNECTIVITY_FIGURES,
        *(GRAPH_FIGURES if drawn_graphs(cohort) else []),
    ]
    return {
        "name": cohort,
        "source": PROJECT.cohorts[cohort].source,
        "atlas": listing.atlas,
        "parcellation": listing.parcellation or "",
        "participants": f"results/{cohort}/cohort/participants.parquet",
        "included": f"results/{cohort}/cohort/included.parquet",
        "issues": f"results/{cohort}/cohort/issues.tsv",
        "connectivity": f"results/{cohort}/figures/connectivity.json",
        "site_trace": (
            f"results/{cohort}/figures/site-trace.tsv" if drawn_graphs(cohort) else ""
        ),
        "quality": [f"{part}-quality.parquet" for part in parts],
        "figures": {name: f"results/{cohort}/figures/{name}.svg" for name in figures},
        "experiments": [
            experiment_outline(cohort, experiment)
            for experiment in experiments_of(cohort)
        ],
    }


def report_outline():
    """Everything that the report shows, as builtins."""
    return {
        "project": PROJECT.project,
        "title": PROJECT.report.title or PROJECT.project,
        "show_subjects": PROJECT.report.show_subjects,
        "seed": PROJECT.seed,
        "config": asdict(PROJECT),
        "cohorts": [cohort_outline(cohort) for cohort in PROJECT.cohorts],
    }


def outline_files(outline):
    """Every file under `results/` that an outline names."""
    if isinstance(outline, dict):
        outline = list(outline.values())
    if isinstance(outline, (list, tuple)):
        return [path for child in outline for path in outline_files(child)]
    return [outline] if str(outline).startswith("results/") else []


def report_files(*_):
    """All artefacts, tables and figures of the report, each once."""
    if FETCHING:
        return []
    outline = report_outline()
    parcellations = [
        cohort["parcellation"]
        for cohort in outline["cohorts"]
        if cohort["parcellation"]
    ]
    return list(dict.fromkeys([*outline_files(outline["cohorts"]), *parcellations]))
