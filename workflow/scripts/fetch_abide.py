"""Download ABIDE I from the Preprocessed Connectomes Project: CC200 series and the phenotype table."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort.sources import fetch_abide

    fetch_abide(running.params.folder, running.progress)
