"""Draw what changes with the score of the linear models of an experiment."""

from brainfed.scripting.job import job

with job(snakemake) as running:
    from brainfed.cohort.classes import class_words
    from brainfed.reporting.figures.patterns import draw_patterns
    from brainfed.reporting.variants import read_variant

    files = snakemake.input
    draw_patterns(
        [read_variant(variant) for variant in running.params.variants],
        list(files.patterns),
        list(files.predictions),
        dict(snakemake.output.items()),
        atlas=(files.parcellation, files.labels or None) if files.get("parcellation") else None,
        truth=files.get("truth") or None,
        seed=running.params.seed,
        words=class_words(running.params.target, running.params.classes),
    )
