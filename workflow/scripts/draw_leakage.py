"""Draw accuracy against leakage against bytes."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort import class_words
    from brainfed.reporting import read_variant
    from brainfed.reporting.charts import draw_leakage

    files, params = snakemake.input, running.params
    draw_leakage(
        [read_variant(variant) for variant in params.variants],
        files.summary,
        files.audit,
        snakemake.output.leakage,
        class_words(params.target, params.classes),
    )
