"""Read the phenotype table and map its codes."""

from brainfed.scripting.job import job

with job(snakemake) as running:
    from brainfed.cohort.phenotype.ingest import ingest
    from brainfed.cohort.settings.cohort import CohortSettings
    from brainfed.runtime.artefacts import write_table
    from brainfed.runtime.settings import restore

    settings = restore(CohortSettings, running.params.settings)
    write_table(
        snakemake.output.participants,
        ingest(snakemake.input.phenotype, settings, running.params.absences, running.params.confounds),
    )
