"""How figures and tables are registered for `snakemake --report`."""


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
    """A figure of an experiment, or of a sweep of splits, registered."""
    return report(
        f"results/{{cohort}}/figures/{{experiment}}/{name}.svg",
        caption=f"../report/{name}.rst",
        category=category,
        subcategory="{cohort}",
        labels={"experiment": "{experiment}", "figure": title},
    )


def shown_table(kind, caption, title):
    """A table of an experiment, registered."""
    return report(
        table_pattern(kind),
        caption=f"../report/{caption}.rst",
        category="Scores",
        subcategory="{cohort}",
        labels={"experiment": "{experiment}", "table": title},
    )
