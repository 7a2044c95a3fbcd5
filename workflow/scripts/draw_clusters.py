"""Draw the clusters of institutions over the rounds of a training."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.reporting import read_variant
    from brainfed.reporting.charts import draw_clusters

    variants = [read_variant(variant) for variant in running.params.variants]
    draw_clusters(variants, list(snakemake.input.histories), snakemake.output.clusters)
