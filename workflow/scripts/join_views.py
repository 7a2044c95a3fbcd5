"""Join the features of several views of every subject."""

from brainfed.scripting.job import job

with job(snakemake) as running:
    from brainfed.imaging.settings import FeatureSettings
    from brainfed.imaging.views import join_views
    from brainfed.runtime.artefacts import canonical_json, write_arrays, write_text
    from brainfed.runtime.settings import restore

    settings = running.params.settings
    joined = join_views(snakemake.input.views, restore(FeatureSettings, settings).views)
    write_arrays(snakemake.output.features, {"features": joined.features}, {**joined.metadata, "settings": settings})
    if snakemake.output.get("timing"):
        write_text(snakemake.output.timing, canonical_json(running.timing()) + "\n")
