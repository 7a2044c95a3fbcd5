"""Draw the figures that describe a cohort."""

from brainfed.scripting.job import job

with job(snakemake) as running:
    from brainfed.cohort.classes import class_words
    from brainfed.cohort.settings.cohort import FlagSettings
    from brainfed.reporting.charts.cohort import draw_cohort

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
