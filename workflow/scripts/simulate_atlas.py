"""Write the parcellation of a simulated cohort."""

from brainfed.scripting import job

with job(snakemake) as running:
    from pathlib import Path

    from brainfed.cohort.settings import SimulateSettings
    from brainfed.cohort.sources import write_atlas
    from brainfed.runtime import restore

    write_atlas(Path(snakemake.output.labels).parent, restore(SimulateSettings, running.params.settings))
