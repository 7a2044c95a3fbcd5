"""Join the standardised region series of every included subject."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.imaging import SeriesSettings
    from brainfed.imaging.series import write_series
    from brainfed.runtime import read_table

    files, settings = snakemake.input, running.params.settings
    included = read_table(files.included, ["subject", "included"])
    write_series(
        snakemake.output.series,
        files.series,
        included.loc[included["included"], "subject"].tolist(),
        SeriesSettings(**settings),
        {"settings": settings, "crossings": []},
    )
