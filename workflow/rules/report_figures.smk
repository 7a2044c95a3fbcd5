"""Which figures there are, and how they are registered for `snakemake --report`."""

COHORT_FIGURES = ["flow", "sites", "ages", "series", "motion", "quality"]
CONNECTIVITY_FIGURES = ["means", "effects", "strongest"]
MEASURE_FIGURES = ["measures"]
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


def drawn_for_paper(kind, title):
    """The figure of an experiment, or of a sweep of splits, that the paper has too, registered."""
    return report(
        f"results/{{cohort}}/figures/{{experiment}}/{kind}.svg",
        caption=f"../report/{kind}.rst",
        category="The paper's figures",
        subcategory="{cohort}",
        labels={"experiment": "{experiment}", "figure": title},
    )


def experiments_that_cut():
    """A wildcard pattern for the experiments with a graph that is cut between institutions."""
    names = [
        name
        for name, experiment in PLAN.experiments.items()
        if scopes_of(experiment.variants)[0]
    ]
    return either(names) if names else "no-such-experiment"


def groups_drawn_as(kind):
    """A wildcard pattern for the experiments, sweeps as one, with a figure of this kind."""
    names = {
        experiment.group
        for experiment in PLAN.experiments.values()
        if experiment.settings.figure == kind
    }
    return either(sorted(names)) if names else "no-such-experiment"
