"""How figures are registered for `snakemake --report`."""


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
