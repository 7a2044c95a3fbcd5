"""Draw accuracy against leakage against bytes."""

from brainfed.scripting.job import job

with job(snakemake) as running:
    from brainfed.cohort.classes import class_words
    from brainfed.reporting.charts.exchanges import draw_leakage
    from brainfed.reporting.variants import read_variant

    files, params = snakemake.input, running.params
    draw_leakage(
        [read_variant(variant) for variant in params.variants],
        files.summary,
        files.audit,
        snakemake.output.leakage,
        class_words(params.target, params.classes),
    )
