"""Draw accuracy against leakage against bytes."""

from brainfed.scripting.job import job

with job(snakemake) as running:
    from brainfed.reporting.figures.scores.leakage import draw_leakage
    from brainfed.reporting.variants import read_variant

    files = snakemake.input
    variants = [read_variant(variant) for variant in running.params.variants]
    draw_leakage(variants, files.summary, files.audit, snakemake.output.leakage)
