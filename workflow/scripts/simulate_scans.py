"""Write the NIfTI images of one shard of a simulated cohort."""

from brainfed.scripting.job import job

with job(snakemake) as running:
    from brainfed.cohort.settings.cohort import CohortSettings
    from brainfed.cohort.sources.simulated_scans import write_scans
    from brainfed.runtime.settings import restore

    files = dict(zip(running.params.subjects, snakemake.output.images, strict=True))
    write_scans(files, restore(CohortSettings, running.params.settings))
