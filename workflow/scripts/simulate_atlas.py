"""Write the parcellation of a simulated cohort."""

from brainfed.scripting.job import job

with job(snakemake) as running:
    from pathlib import Path

    from brainfed.cohort.settings.sources import SimulateSettings
    from brainfed.cohort.sources.simulated_scans import write_atlas
    from brainfed.runtime.settings import restore

    write_atlas(Path(snakemake.output.labels).parent, restore(SimulateSettings, running.params.settings))
