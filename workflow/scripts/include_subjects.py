"""Select the included subjects, and find twins."""

from brainfed.scripting import job

with job(snakemake) as running:
    import pandas as pd

    from brainfed.cohort.quality import crossings_of_inclusion, include, join_quality
    from brainfed.cohort.settings import CohortSettings
    from brainfed.runtime import canonical_json, read_table, restore, write_table, write_text

    measured = join_quality(
        read_table(snakemake.input.participants),
        pd.concat([read_table(path) for path in snakemake.input.quality], ignore_index=True),
        read_table(snakemake.input.measures),
    )
    settings = restore(CohortSettings, running.params.settings)
    write_table(snakemake.output.included, include(measured, settings))
    crossings = crossings_of_inclusion(measured, settings.source)
    write_text(snakemake.output.crossings, canonical_json({"crossings": list(crossings)}) + "\n")
