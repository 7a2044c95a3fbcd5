"""Draw the institutions and folds of one repeat."""

from brainfed.scripting.job import job

with job(snakemake) as running:
    from brainfed.cohort.settings.splits import SplitSettings
    from brainfed.cohort.splits.institutions import split
    from brainfed.runtime.artefacts import read_table, write_table
    from brainfed.runtime.streams import Streams

    drawn = split(
        read_table(snakemake.input.included, ["subject", "included", "twin_group", "reason"]),
        read_table(snakemake.input.participants, ["subject", "site", "diagnosis"]),
        SplitSettings(**running.params.settings),
        Streams(running.params.seed, running.params.repeat),
        running.params.target,
        running.params.classes,
        running.params.sites,
    )
    write_table(snakemake.output.split, drawn)
