"""Write the series, correlations and coverage of a cohort as BIDS files."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.imaging import ExportFiles, export_bids

    files, params = snakemake.input, running.params
    export_bids(
        snakemake.output.folder,
        ExportFiles(files.series, files.quality, files.coverage),
        params.atlas,
        params.images,
        params.by_run,
    )
