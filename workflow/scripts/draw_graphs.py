"""Draw the population graphs of a cohort."""

from brainfed.runtime.job import job

with job(snakemake):
    from brainfed.cohort.class_words import CLASS_WORDS
    from brainfed.reporting.graph_gallery import draw_graphs

    draw_graphs(
        snakemake.params.stages,
        list(snakemake.input.graphs),
        list(snakemake.input.splits),
        snakemake.input.participants,
        dict(snakemake.output.items()),
        CLASS_WORDS[snakemake.params.target],
    )
