"""Draw how the connectivity of patients and controls differs."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort import class_words
    from brainfed.reporting.figures import draw_connectivity

    files = snakemake.input
    draw_connectivity(
        list(files.series),
        files.participants,
        files.included,
        (files.parcellation, files.labels or None) if files.get("parcellation") else None,
        dict(snakemake.output.items()),
        class_words(running.params.target, running.params.classes),
        by_run=running.params.by_run,
    )
