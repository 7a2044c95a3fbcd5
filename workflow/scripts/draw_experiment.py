"""Draw the learning curves and scores of an experiment."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort import class_words
    from brainfed.papers import BESIDE
    from brainfed.reporting import read_variant
    from brainfed.reporting.charts import draw_experiment

    files, params = snakemake.input, running.params
    draw_experiment(
        [read_variant(variant, BESIDE) for variant in params.variants],
        params.repeats,
        {
            "predictions": list(files.predictions),
            "histories": list(files.histories),
            "runs": [files.runs],
            "tests": [files.tests],
            "gain": [files.gain],
            "splits": list(files.splits),
            "people": [files.people],
            "included": [files.included],
            "quality": [files.quality],
        },
        reference=params.reference,
        outputs=dict(snakemake.output.items()),
        words=class_words(params.target, params.classes),
        pooled=params.pooled,
    )
