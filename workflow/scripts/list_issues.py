"""List the issues of a cohort's data."""

from brainfed.scripting import job

with job(snakemake) as running:
    import pandas as pd

    from brainfed.cohort.quality import join_quality, list_issues
    from brainfed.cohort.settings import CohortSettings
    from brainfed.runtime import read_table, restore, write_tsv

    measured = join_quality(
        read_table(snakemake.input.participants),
        pd.concat([read_table(path) for path in snakemake.input.quality], ignore_index=True),
        read_table(snakemake.input.measures),
    )
    issues = list_issues(
        measured,
        read_table(snakemake.input.included),
        pd.concat([read_table(path) for path in snakemake.input.coverage], ignore_index=True),
        restore(CohortSettings, running.params.settings),
        running.params.strangers,
        further=pd.concat([read_table(path) for path in snakemake.input.further]) if snakemake.input.further else None,
    )
    write_tsv(snakemake.output.issues, issues)
