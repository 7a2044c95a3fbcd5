"""Draw a piece of the population graph whole, cut between institutions, and as the institutions build it themselves."""

from brainfed.runtime.job import job

with job(snakemake) as running:
    from brainfed.reporting.scope_figure import draw_scopes

    files = snakemake.input
    draw_scopes(files.cut, next(iter(files.own), None), files.split, snakemake.output.scopes)
