"""Draw a figure of the paper from one experiment or a sweep of splits."""

from brainfed.scripting.job import job

with job(snakemake) as running:
    from brainfed.reporting.figures.paper.gallery import draw

    draw(running.params.kind, running.params.experiment, snakemake.output.figure)
