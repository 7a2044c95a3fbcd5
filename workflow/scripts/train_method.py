"""Train one method on one repeat, all folds, and score every tested subject."""

from brainfed.scripting import job

with job(snakemake, gpu=True) as running:
    from brainfed.scripting import train_method

    train_method(running, snakemake.input, snakemake.output)
