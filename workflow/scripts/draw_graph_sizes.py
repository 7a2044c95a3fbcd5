"""Draw the sizes of the graphs of a cohort."""

from brainfed.scripting.job import job

with job(snakemake) as running:
    from brainfed.cohort.classes import class_words
    from brainfed.reporting.charts.graphs import draw_sizes

    files = snakemake.input
    draw_sizes(
        files.graphs,
        files.participants,
        files.included,
        snakemake.output.sizes,
        snakemake.output.summary,
        class_words("class", running.params.classes),
    )
