"""Choose the public subjects of one repeat, in all its folds."""

from brainfed.scripting.job import job

with job(snakemake) as running:
    from brainfed.cohort.settings.splits import PublicSettings
    from brainfed.cohort.splits.folds import draw_public
    from brainfed.runtime.artefacts import read_table, write_table
    from brainfed.runtime.streams import Streams

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
