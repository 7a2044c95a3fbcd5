"""Decide who is included, find twins, list what is wrong."""

from brainfed.runtime.job import job

with job(snakemake):
    import pandas as pd

    from brainfed.cohort.quality import include
    from brainfed.cohort.settings import CohortSettings
    from brainfed.runtime.artefacts import read_table, write_table, write_tsv
    from brainfed.runtime.settings import restore

    included, issues = include(
        read_table(snakemake.input.participants),
        pd.concat([read_table(path) for path in snakemake.input.quality], ignore_index=True),
        pd.concat([read_table(path) for path in snakemake.input.coverage], ignore_index=True),
        restore(CohortSettings, snakemake.params.settings),
        read_table(snakemake.input.measures),
        snakemake.params.strangers,
    )
    write_table(snakemake.output.included, included)
    write_tsv(snakemake.output.issues, issues)
