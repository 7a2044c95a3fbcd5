"""Draw a piece of the population graph in three scopes: whole, cut between institutions, built inside each."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.reporting.figures import draw_scopes

    files = snakemake.input
    draw_scopes(files.cut, next(iter(files.own), None), files.split, snakemake.output.scopes)
