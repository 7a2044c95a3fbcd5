"""Read the FreeSurfer measures of a cohort."""

from brainfed.runtime.job import job

with job(snakemake):
    from brainfed.cohort.settings import CohortSettings
    from brainfed.imaging.measures import write_measures
    from brainfed.imaging.shard import ShardFiles
    from brainfed.runtime.settings import restore

    write_measures(
        dict(snakemake.params.subjects),
        restore(CohortSettings, {"source": "freesurfer", **snakemake.params.settings}),
        ShardFiles(snakemake.output.measures, snakemake.output.quality, snakemake.output.coverage),
    )
