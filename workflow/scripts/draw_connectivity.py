"""Draw how the connectivity of patients and controls differs."""

from brainfed.runtime.job import job

with job(snakemake):
    from brainfed.reporting.connectivity_gallery import draw_connectivity

    files = snakemake.input
    draw_connectivity(
        list(files.series),
        files.participants,
        files.included,
        (files.parcellation, files.labels) if files.get("parcellation") else None,
        dict(snakemake.output.items()),
    )
