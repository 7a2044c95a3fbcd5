"""Score every run of an experiment and test every variant against the reference."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.evaluation import score_experiment

    params = running.params
    score_experiment(
        [(variant, repeat) for variant in params.variants for repeat in range(params.repeats)],
        list(snakemake.input.predictions),
        list(snakemake.input.splits),
        counterparts=params.counterparts,
        reference=params.reference,
        outputs=dict(snakemake.output.items()),
        pooled=params.pooled,
        participants=next(iter(snakemake.input.participants), None),
    )
