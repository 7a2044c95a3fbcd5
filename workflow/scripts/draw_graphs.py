"""Draw the population graphs of a cohort."""

from brainfed.scripting.job import job

with job(snakemake) as running:
    from brainfed.cohort.classes import class_words
    from brainfed.reporting.figures.graphs import draw_graphs

    draw_graphs(
        running.params.stages,
        list(snakemake.input.graphs),
        list(snakemake.input.splits),
        snakemake.input.participants,
        dict(snakemake.output.items()),
        class_words(running.params.target, running.params.classes),
    )
