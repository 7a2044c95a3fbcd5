"""Write the NIfTI images of one shard of a simulated cohort."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort.settings import CohortSettings
    from brainfed.cohort.sources import write_scans
    from brainfed.runtime import restore

    files = dict(zip(running.params.subjects, snakemake.output.images, strict=True))
    write_scans(files, restore(CohortSettings, running.params.settings))
