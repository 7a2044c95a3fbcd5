"""Read the FreeSurfer measures of a cohort."""

from brainfed.scripting.job import job

with job(snakemake) as running:
    from brainfed.cohort.settings.cohort import CohortSettings
    from brainfed.imaging.morphometry.features import write_measures
    from brainfed.imaging.series.shards import ShardFiles
    from brainfed.runtime.settings import restore

    write_measures(
        dict(running.params.subjects),
        restore(CohortSettings, {"source": "freesurfer", **running.params.settings}),
        ShardFiles(snakemake.output.measures, snakemake.output.quality, snakemake.output.coverage),
    )
