"""Draw a figure of the paper from one experiment or a sweep of splits."""

from brainfed.scripting.job import job

with job(snakemake) as running:
    from brainfed.papers.beside import BESIDE
    from brainfed.papers.figures import FIGURES, PRINTINGS
    from brainfed.reporting.charts.of_papers import draw
    from brainfed.reporting.outline import read_experiment

    outline = read_experiment(running.params.experiment, BESIDE)
    draw(running.params.kind, outline, snakemake.output.figure, FIGURES, PRINTINGS)
