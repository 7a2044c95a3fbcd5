"""Draw the population graphs of a cohort."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort import class_words
    from brainfed.reporting.figures import draw_graphs

    draw_graphs(
        running.params.stages,
        list(snakemake.input.graphs),
        list(snakemake.input.splits),
        snakemake.input.participants,
        dict(snakemake.output.items()),
        class_words(running.params.target, running.params.classes),
    )
