"""Download data sets of graphs of the TU Dortmund collection."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort.sources import fetch_data_sets

    for folder, names in running.params.data_sets.items():
        fetch_data_sets(names, folder, running.progress)
