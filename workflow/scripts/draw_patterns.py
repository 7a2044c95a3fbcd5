"""Draw what changes with the score of the linear models of an experiment."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort import class_words
    from brainfed.reporting import read_variant
    from brainfed.reporting.figures import draw_patterns

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
