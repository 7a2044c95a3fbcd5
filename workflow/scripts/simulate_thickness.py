"""Write the table of cortical thickness of a simulated cohort."""

from brainfed.scripting.job import job

with job(snakemake) as running:
    from brainfed.cohort.settings.cohort import CohortSettings
    from brainfed.cohort.sources.simulated_subjects import write_thickness
    from brainfed.runtime.settings import restore

    write_thickness(snakemake.output.thickness, restore(CohortSettings, running.params.settings))
