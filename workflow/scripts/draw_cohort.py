"""Draw the figures that describe a cohort."""

from brainfed.runtime.job import job

with job(snakemake):
    from brainfed.reporting.cohort_gallery import draw_cohort

    draw_cohort(
        snakemake.input.participants,
        snakemake.input.included,
        list(snakemake.input.quality),
        list(snakemake.input.coverage),
        dict(snakemake.output.items()),
    )
