"""Draw the sizes of the graphs of a cohort."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort import class_words
    from brainfed.reporting.charts import draw_sizes

    files = snakemake.input
    draw_sizes(
        files.graphs,
        files.participants,
        files.included,
        snakemake.output.sizes,
        snakemake.output.summary,
        class_words("class", running.params.classes),
    )
