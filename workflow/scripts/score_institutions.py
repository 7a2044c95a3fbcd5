"""Score the institutions of a clustered federation by the last model and as the paper does."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.evaluation import score_institutions

    params, files = running.params, snakemake.input
    histories = iter(files.histories)
    score_institutions(
        files.runs,
        {variant: [next(histories) for _ in range(params.repeats)] for variant in params.variants},
        params.counterparts,
        snakemake.output.table,
    )
