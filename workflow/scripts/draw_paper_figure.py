"""Draw a figure that the paper has too, of one experiment or of a sweep of splits."""

from brainfed.runtime.jobs.job import job

with job(snakemake) as running:
    from brainfed.reporting.figures.paper.gallery import draw

    draw(running.params.kind, running.params.experiment, snakemake.output.figure)
