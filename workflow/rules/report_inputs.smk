"""What a report reads."""

from types import SimpleNamespace


def files_of_the_workflow(folder, pattern):
    """Files beside the rules; those inside the project keep their names when its folder moves."""
    here = Path.cwd()
    found = sorted((BASE / folder).glob(pattern))
    return [
        str(path.relative_to(here) if path.is_relative_to(here) else path)
        for path in found
    ]


def shown_variant(variant, experiment):
    return {
        "name": variant.name,
        "method": variant.method.name,
        "method_title": variant.method.title,
        "family": variant.method.family,
        "topology": topology_of(variant),
        "twins": find_twins(variant, experiment.variants),
        "settings": variant.settings,
        "shipped": shipped_settings(variant.method),
        "stages": variant.stages(),
    }


def atlas_file(wildcards, kind):
    """The parcellation or its region table, where the regions are known to be those of the parcellation."""
    listing = LISTINGS[wildcards.cohort]
    fits = listing.labels or cohort_of(wildcards).source != "timeseries"
    return (listing.parcellation and fits and getattr(listing, kind)) or []


def graph_experiment(cohort):
    """The experiment whose graphs are drawn: the first of a run that names nothing, else one with the fewest repeats."""
    shown = [
        experiment
        for experiment in PLAN.experiments.values()
        if cohort in experiment.cohorts
        and any(variant.graph for variant in experiment.variants)
    ]
    return min(
        shown,
        key=lambda experiment: (
            not experiment.default,
            0 if experiment.default else experiment.repeats,
        ),
        default=None,
    )


def drawn_graphs(cohort):
    """(stage, graph, split) of the experiment whose graphs are drawn: every repeat, graphs inside institutions first."""
    experiment = graph_experiment(cohort)
    if experiment is None:
        return []
    stages = {
        variant.graph.name: variant.graph
        for variant in experiment.variants
        if variant.graph
    }
    ordered = sorted(
        stages.values(),
        key=lambda stage: (stage.settings.shuffle, stage.settings.scope == "global"),
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


def drawn_scopes(wildcards):
    """The graph that an experiment cuts, the institutions' own where it has them, and their split, in the first repeat."""
    experiment = PLAN.experiments[wildcards.experiment]
    cut, own = scopes_of(experiment.variants)
    first = SimpleNamespace(cohort=wildcards.cohort, repeat=0)
    return {
        "cut": graph_files(first, cut)[0],
        "own": graph_files(first, own)[:1],
        "split": split_file(first, cut.split),
    }


def scopes_experiment(cohort, experiments):
    """The experiment whose graphs explain the scopes: one of the page that has both, else that of the other pictures."""
    shown = [experiment for experiment in experiments if cohort in experiment.cohorts]
    of_graphs = graph_experiment(cohort)
    candidates = [
        *(one for one in shown if all(scopes_of(one.variants))),
        *([of_graphs] if of_graphs else []),
    ]
    return next((one for one in candidates if scopes_of(one.variants)[0]), None)


def of_repeats(cohort, experiment, files):
    """What `files` gives for every repeat, each file once."""
    places = [
        SimpleNamespace(cohort=cohort, repeat=repeat)
        for repeat in range(experiment.repeats)
    ]
    return list(dict.fromkeys(path for place in places for path in files(place)))


def generator_files(cohort, experiment, variant, name):
    """One file of every generator that a variant reads."""
    if variant.fused is None:
        return []
    stage = variant.fused.inpainting
    return [
        f"results/{cohort}/inpainting/{stage.name}/repeat-{repeat}/{part}/{name}"
        for repeat in range(experiment.repeats)
        for part in parts_of(cohort, variant.fused)
    ]


def preparation_files(cohort, experiment, variant):
    """What a repeat fits or builds before a variant is trained; a generator has a cost of its own."""
    fitted = variant.features if variant.features and variant.features.fitted else None
    return {
        "features": of_repeats(
            cohort, experiment, lambda wc: feature_files(wc, fitted)
        ),
        "graph": of_repeats(
            cohort, experiment, lambda wc: graph_files(wc, variant.graph)
        ),
        "fusing": of_repeats(
            cohort, experiment, lambda wc: fused_files(wc, variant.fused)
        ),
    }


def timings_beside(files):
    """The time that each of these took, written beside it."""
    return [file.replace(".safetensors", "-timing.json") for file in files]


def fidelity_files(cohort, experiment, variant):
    """How generated compare with true neighbours, in an experiment that shows it, where those are known."""
    if experiment.settings.figure != "fidelity" or not knows_truth(variant):
        return []
    return [
        f"results/{cohort}/fidelity/{variant.fused.name}/repeat-{repeat}.json"
        for repeat in range(experiment.repeats)
    ]


def variant_outline(cohort, experiment, variant):
    """One row of a table, as the report reads it: builtins only."""
    folder = f"results/{cohort}/methods/{experiment.regime.name}/{variant.name}"

    def own(name):
        return [f"{folder}/repeat-{n}/{name}" for n in range(experiment.repeats)]

    def generators(name):
        return generator_files(cohort, experiment, variant, name)

    return shown_variant(variant, experiment) | {
        "costs": own("cost.json"),
        "timings": own("timing.json"),
        "histories": own("history.parquet"),
        "feature_files": of_repeats(
            cohort, experiment, lambda wc: feature_files(wc, variant.features)
        ),
        "fused": of_repeats(
            cohort, experiment, lambda wc: fused_files(wc, variant.fused)
        ),
        "inpainting": {
            "histories": generators("history.parquet"),
            "costs": generators("cost.json"),
            "timings": generators("timing.json"),
        },
        "preparation": {
            name: timings_beside(files)
            for name, files in preparation_files(cohort, experiment, variant).items()
        },
        "fidelity": fidelity_files(cohort, experiment, variant),
    }


def experiment_title(experiment):
    """As the config writes it; in a sweep of splits with the values that tell its experiments apart."""
    title = experiment.settings.title or experiment.group
    swept = swept_split(PLAN, experiment)
    told = ", ".join(f"{key} = {value}" for key, value in swept.items())
    return f"{title} ({told})" if told else title


def experiment_outline(cohort, experiment):
    """One experiment of a cohort, as the report reads it: builtins only."""
    tables = f"results/{cohort}/tables/{experiment.name}"
    figures = f"results/{cohort}/figures"
    kind = experiment.settings.figure
    drawn = {
        name: f"{figures}/{experiment.name}/{name}.svg" for name in EXPERIMENT_FIGURES
    }
    # A figure over several cohorts lies with, and is shown with, the first of them.
    if kind != "none" and (kind != "dose" or cohort == experiment.cohorts[0]):
        drawn[kind] = f"{figures}/{experiment.group}/{kind}.svg"
    return {
        "name": experiment.name,
        "cohort": cohort,
        "group": experiment.group if swept_split(PLAN, experiment) else "",
        "title": experiment_title(experiment),
        "figure": kind,
        "axes": list(experiment.settings.axes),
        "paper": experiment.settings.paper,
        "protocol": experiment.regime.protocol,
        "labels": experiment.regime.labels,
        "reference": experiment.settings.reference,
        "repeats": experiment.repeats,
        "split": asdict(experiment.split),
        "splits": [
            f"results/{cohort}/splits/{experiment.regime.split}/repeat-{repeat}.parquet"
            for repeat in range(experiment.repeats)
        ],
        "tables": {
            "summary": f"{tables}.tsv",
            "runs": f"{tables}-runs.tsv",
            "tests": f"{tables}-tests.tsv",
            "gain": f"{tables}-gain.tsv",
            "confusion": f"{tables}-confusion.tsv",
        },
        "figures": drawn,
        "variants": [
            variant_outline(cohort, experiment, variant)
            for variant in experiment.variants
        ],
    }


def figure_outline(cohort, name):
    """The experiment that a figure is drawn of; a sweep of splits lists its experiments as `members`, the figure
    `dose` its cohorts, with their simulations."""
    experiments = PLAN.group(name)
    if experiments[0].settings.figure == "dose":
        members = [
            experiment_outline(member, experiments[0])
            | {"figures": {}, "simulate": asdict(PROJECT.cohorts[member].simulate)}
            for member in experiments[0].cohorts
        ]
        return members[0] | {"members": members}
    outlines = [
        experiment_outline(cohort, experiment) | {"figures": {}}
        for experiment in experiments
    ]
    members = outlines if swept_split(PLAN, experiments[0]) else []
    return outlines[0] | {"name": name, "members": members}


def cohort_outline(cohort, experiments):
    """One cohort with those of the experiments that it is in, as the report reads it: builtins only."""
    listing = LISTINGS[cohort]
    kind = PROJECT.cohorts[cohort].kind
    has_graphs = graph_experiment(cohort) is not None and any(
        variant.graph for experiment in experiments for variant in experiment.variants
    )
    figures = [
        *(COHORT_FIGURES if kind == "connectivity" else ["flow", "sites", "ages"]),
        *(CONNECTIVITY_FIGURES if kind == "connectivity" else MEASURE_FIGURES),
        *(GRAPH_FIGURES if has_graphs else []),
    ]
    drawn = {name: f"results/{cohort}/figures/{name}.svg" for name in figures}
    scopes = scopes_experiment(cohort, experiments) if has_graphs else None
    if scopes is not None:
        drawn["scopes"] = f"results/{cohort}/figures/{scopes.name}/scopes.svg"
    return {
        "name": cohort,
        "source": PROJECT.cohorts[cohort].source,
        "target": PROJECT.cohorts[cohort].target,
        "classes": list(PROJECT.cohorts[cohort].classes),
        "kind": kind,
        "atlas": listing.atlas,
        "parcellation": listing.parcellation or "",
        "participants": f"results/{cohort}/cohort/participants.parquet",
        "included": f"results/{cohort}/cohort/included.parquet",
        "issues": f"results/{cohort}/cohort/issues.tsv",
        "measures": f"results/{cohort}/cohort/quality.parquet",
        "connections": f"results/{cohort}/cohort/qc-fc.parquet",
        "crossings": [
            f"results/{cohort}/cohort/{job}-crossings.json"
            for job in ("quality", "included")
        ],
        "flag": asdict(PROJECT.cohorts[cohort].flag),
        "connectivity": f"results/{cohort}/figures/{'connectivity' if kind == 'connectivity' else 'measures'}.json",
        "site_trace": (
            f"results/{cohort}/figures/site-trace.tsv" if has_graphs else ""
        ),
        "quality": shard_files(SimpleNamespace(cohort=cohort), "-quality.parquet"),
        "figures": drawn,
        "experiments": [
            experiment_outline(cohort, experiment)
            for experiment in experiments
            if cohort in experiment.cohorts
        ],
    }


def report_outline(page):
    """Everything that a report shows, as builtins."""
    experiments = REPORTS[page]
    cohorts = [
        cohort
        for cohort in PROJECT.cohorts
        if page == PROJECT.project
        or any(cohort in experiment.cohorts for experiment in experiments)
    ]
    return {
        "project": PROJECT.project,
        "title": PROJECT.report.title or PROJECT.project,
        "show_subjects": PROJECT.report.show_subjects,
        "seed": PROJECT.seed,
        "config": config_of(PLAN, experiments),
        "cohorts": [cohort_outline(cohort, experiments) for cohort in cohorts],
    }


def outline_files(outline):
    """Every file under `results/` that an outline names."""
    if isinstance(outline, dict):
        outline = list(outline.values())
    if isinstance(outline, (list, tuple)):
        return [path for child in outline for path in outline_files(child)]
    return [outline] if str(outline).startswith("results/") else []


def report_files(wildcards):
    """All artefacts, tables and figures of a report, each once."""
    if FETCHING:
        return []
    outline = report_outline(wildcards.page)
    parcellations = [
        cohort["parcellation"]
        for cohort in outline["cohorts"]
        if cohort["parcellation"]
    ]
    return list(dict.fromkeys([*outline_files(outline["cohorts"]), *parcellations]))
