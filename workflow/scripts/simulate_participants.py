"""Write the phenotype table and the truth of a simulated cohort."""

from brainfed.scripting import job

with job(snakemake) as running:
    from pathlib import Path

    from brainfed.cohort.settings import CohortSettings
    from brainfed.cohort.sources import write_participants
    from brainfed.runtime import restore

    write_participants(Path(snakemake.output.truth).parent, restore(CohortSettings, running.params.settings))
