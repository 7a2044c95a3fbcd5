"""Write the phenotype table, the atlas and the truth of a simulated cohort."""

from brainfed.runtime.job import job

with job(snakemake):
    from pathlib import Path

    from brainfed.cohort.settings import CohortSettings
    from brainfed.cohort.simulate import write_cohort_files
    from brainfed.runtime.settings import restore

    write_cohort_files(Path(snakemake.output.truth).parent, restore(CohortSettings, snakemake.params.settings))
