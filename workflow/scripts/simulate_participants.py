"""Write the phenotype table and the truth of a simulated cohort."""

from brainfed.scripting.job import job

with job(snakemake) as running:
    from pathlib import Path

    from brainfed.cohort.settings.cohort import CohortSettings
    from brainfed.cohort.sources.simulated_scans import write_participants
    from brainfed.runtime.settings import restore

    write_participants(Path(snakemake.output.truth).parent, restore(CohortSettings, running.params.settings))
