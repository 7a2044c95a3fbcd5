"""Download known atlases: labels and a region table each."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort.sources import fetch_atlases

    fetch_atlases(running.params.names, running.params.folder, running.progress)
