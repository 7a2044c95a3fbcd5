"""Write the phenotype of the listed subjects, or some columns of it, as a table with one row a participant."""

from brainfed.scripting.job import job

with job(snakemake) as running:
    from brainfed.cohort.phenotype.ingest import participants_table, people_of_table
    from brainfed.cohort.phenotype.participant import values_of
    from brainfed.cohort.settings.cohort import CohortSettings
    from brainfed.runtime.artefacts import write_table
    from brainfed.runtime.settings import restore

    given, simulated = running.params.ingested, snakemake.input.simulated
    if simulated:
        settings = restore(CohortSettings, given["settings"])
        given = {"values": values_of(people_of_table(simulated, settings, {}), given["columns"])}
    write_table(snakemake.output.participants, participants_table(**given))
