"""Read the FreeSurfer measures of a cohort."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort.settings import CohortSettings
    from brainfed.imaging.morphometry import write_measures
    from brainfed.imaging.series import ShardFiles
    from brainfed.runtime import restore

    write_measures(
        dict(running.params.subjects),
        restore(CohortSettings, {"source": "freesurfer", **running.params.settings}),
        ShardFiles(snakemake.output.measures, snakemake.output.quality, snakemake.output.coverage),
    )
