"""Draw a figure that the paper has too, of one experiment or of a sweep of splits."""

from brainfed.runtime.job import job

with job(snakemake) as running:
    from brainfed.reporting.paper_figures import draw

    draw(running.params.kind, running.params.experiment, snakemake.output.figure)
