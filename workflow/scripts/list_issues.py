"""List the issues of a cohort's data."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort.quality import join_quality, list_issues
    from brainfed.cohort.settings import CohortSettings
    from brainfed.runtime import read_table, read_tables, restore, write_tsv

    measured = join_quality(
        read_table(snakemake.input.participants),
        read_tables(snakemake.input.quality),
        read_table(snakemake.input.measures),
    )
    issues = list_issues(
        measured,
        read_table(snakemake.input.included),
        read_tables(snakemake.input.coverage),
        restore(CohortSettings, running.params.settings),
        running.params.strangers,
        further=read_tables(snakemake.input.further) if snakemake.input.further else None,
    )
    write_tsv(snakemake.output.issues, issues)
