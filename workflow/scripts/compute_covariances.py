"""Compute the covariances of one shard's subjects and their logarithms."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.imaging import covariances, write_covariances
    from brainfed.imaging.series import load_runs
    from brainfed.runtime import read_arrays

    params, series = running.params, read_arrays(snakemake.input.series)
    runs = load_runs([snakemake.input.series]) if params.by_run else {}
    every = covariances(series.arrays, series.metadata["regions"], params.shrinkage, runs, snakemake.threads)
    write_covariances(snakemake.output.covariances, every, params.shrinkage)
