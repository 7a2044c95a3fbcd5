"""Draw the clusters of institutions over the rounds of a training."""

from brainfed.scripting.job import job

with job(snakemake) as running:
    from brainfed.reporting.charts.clusters import draw_clusters
    from brainfed.reporting.variants import read_variant

    variants = [read_variant(variant) for variant in running.params.variants]
    draw_clusters(variants, list(snakemake.input.histories), snakemake.output.clusters)
