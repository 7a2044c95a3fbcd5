"""Read the phenotype table and map its codes."""

from brainfed.runtime.job import job

with job(snakemake):
    from brainfed.cohort.ingest import ingest
    from brainfed.cohort.settings import CohortSettings
    from brainfed.runtime.artefacts import write_table
    from brainfed.runtime.settings import restore

    settings = restore(CohortSettings, snakemake.params.settings)
    write_table(
        snakemake.output.participants,
        ingest(snakemake.input.phenotype, settings, snakemake.params.absences, snakemake.params.confounds),
    )
