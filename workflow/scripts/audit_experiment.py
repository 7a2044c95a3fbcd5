"""Attack every variant of an experiment: find the subjects that trained it."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.evaluation import audit_experiment

    params, files = running.params, snakemake.input
    audit_experiment(
        [(variant, repeat) for variant in params.variants for repeat in range(params.repeats)],
        list(files.predictions),
        list(files.members),
        files.included,
        snakemake.output.table,
    )
