"""Join the standardised region series of every included subject."""

from brainfed.scripting.job import job

with job(snakemake) as running:
    from brainfed.imaging.series.shards import write_series
    from brainfed.imaging.settings import SeriesSettings
    from brainfed.runtime.artefacts import read_table

    files, settings = snakemake.input, running.params.settings
    included = read_table(files.included, ["subject", "included"])
    write_series(
        snakemake.output.series,
        files.series,
        included.loc[included["included"], "subject"].tolist(),
        SeriesSettings(**settings),
        {"settings": settings, "crossings": []},
    )
