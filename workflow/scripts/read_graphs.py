"""Read the public graphs of a cohort."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.graphs import GraphFiles, write_graphs

    write_graphs(
        running.params.folders,
        running.params.subjects,
        GraphFiles(snakemake.output.graphs, snakemake.output.quality, snakemake.output.coverage),
    )
