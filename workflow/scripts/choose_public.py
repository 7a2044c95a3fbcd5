"""Choose the public subjects of one repeat, in all its folds."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort.settings import PublicSettings
    from brainfed.cohort.splits import draw_public
    from brainfed.runtime import Streams, read_table, write_table

    files, params = snakemake.input, running.params
    drawn = draw_public(
        read_table(files.split, ["subject", "institution", "fold"]),
        read_table(files.participants, ["subject", "diagnosis"]),
        read_table(files.included, ["subject", "twin_group"]),
        PublicSettings(**params.settings),
        Streams(params.seed, params.repeat),
        params.target,
        params.classes,
    )
    write_table(snakemake.output.public, drawn)
