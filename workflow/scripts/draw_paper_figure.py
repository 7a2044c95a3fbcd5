"""Draw a figure of the paper from one experiment or a sweep of splits."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.papers import BESIDE, FIGURES, PRINTINGS
    from brainfed.reporting import read_experiment
    from brainfed.reporting.charts import draw

    outline = read_experiment(running.params.experiment, BESIDE)
    draw(running.params.kind, outline, snakemake.output.figure, FIGURES, PRINTINGS)
