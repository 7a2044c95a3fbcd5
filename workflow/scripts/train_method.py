"""Train one method on one repeat, all folds, and score every tested subject."""

from brainfed.scripting.job import job

with job(snakemake, gpu=True) as running:
    from brainfed.scripting.training import train_method

    train_method(running, snakemake.input, snakemake.output)
