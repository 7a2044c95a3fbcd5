"""Join the features of several views of every subject."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.imaging import FeatureSettings, join_views
    from brainfed.runtime import restore, write_arrays, write_json

    settings = running.params.settings
    joined = join_views(snakemake.input.views, restore(FeatureSettings, settings).views)
    write_arrays(snakemake.output.features, {"features": joined.features}, {**joined.metadata, "settings": settings})
    if snakemake.output.get("timing"):
        write_json(snakemake.output.timing, running.timing())
