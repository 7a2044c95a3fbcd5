"""Write the table of cortical thickness of a simulated cohort."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort.settings import CohortSettings
    from brainfed.cohort.sources import write_thickness
    from brainfed.runtime import restore

    write_thickness(snakemake.output.thickness, restore(CohortSettings, running.params.settings))
