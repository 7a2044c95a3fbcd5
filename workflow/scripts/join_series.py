"""Join the standardised region series of every included subject."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort.quality import included_subjects
    from brainfed.imaging import SeriesSettings
    from brainfed.imaging.series import write_series

    files, settings = snakemake.input, running.params.settings
    write_series(
        snakemake.output.series,
        files.series,
        included_subjects(files.included),
        SeriesSettings(**settings),
        {"settings": settings, "crossings": []},
    )
