"""Draw the figures that describe a cohort."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort import class_words
    from brainfed.cohort.settings import FlagSettings
    from brainfed.reporting.charts import draw_cohort

    draw_cohort(
        snakemake.input.participants,
        snakemake.input.included,
        snakemake.input.measures,
        snakemake.input.connections,
        list(snakemake.input.coverage),
        FlagSettings(**running.params.flag),
        dict(snakemake.output.items()),
        class_words(running.params.target, running.params.classes),
    )
