"""Follow the subjects that issues name, from their scans to their scores."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort import class_words
    from brainfed.reporting.tables import write_followed

    files, params = snakemake.input, running.params
    runs = [(variant, repeat) for variant in params.variants for repeat in range(params.repeats)]
    write_followed(
        {name: files[name] for name in ("participants", "included", "measures", "issues")},
        list(files.series),
        dict(zip(runs, files.predictions, strict=True)),
        class_words(params.target, params.classes),
        snakemake.output.subjects,
        by_run=params.by_run,
    )
