"""Draw how the FreeSurfer measures of patients and controls differ."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort import class_words
    from brainfed.reporting.charts import draw_measures

    files = snakemake.input
    draw_measures(
        files.measures,
        files.participants,
        files.included,
        dict(snakemake.output.items()),
        class_words(running.params.target, running.params.classes),
    )
