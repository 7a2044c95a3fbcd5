"""Select the included subjects, and find duplicates."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort.quality import crossings_of_inclusion, include, join_quality
    from brainfed.cohort.settings import CohortSettings
    from brainfed.runtime import read_table, read_tables, restore, write_json, write_table

    measured = join_quality(
        read_table(snakemake.input.participants),
        read_tables(snakemake.input.quality),
        read_table(snakemake.input.measures),
    )
    settings = restore(CohortSettings, running.params.settings)
    write_table(snakemake.output.included, include(measured, settings))
    crossings = crossings_of_inclusion(measured, settings.source)
    write_json(snakemake.output.crossings, {"crossings": list(crossings)})
