"""Write the phenotype of the listed subjects, or some columns of it, as a table with one row a participant."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort.phenotype import participants_table, people_of_table, values_of
    from brainfed.cohort.settings import CohortSettings
    from brainfed.runtime import restore, write_table

    given, simulated = running.params.ingested, snakemake.input.simulated
    if simulated:
        settings = restore(CohortSettings, given["settings"])
        given = {"values": values_of(people_of_table(simulated, settings, {}), given["columns"])}
    write_table(snakemake.output.participants, participants_table(**given))
