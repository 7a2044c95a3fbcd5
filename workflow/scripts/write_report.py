"""Write the report: one HTML file."""

from brainfed.scripting.job import job

with job(snakemake) as running:
    from brainfed.papers.beside import BESIDE
    from brainfed.papers.pages import PAPERS
    from brainfed.reporting.document import write_report
    from brainfed.reporting.outline import read_outline

    write_report(
        read_outline(running.params.outline, BESIDE),
        list(snakemake.input.captions),
        [path for path in snakemake.input.results if path.startswith("results/")],
        snakemake.output.report,
        PAPERS,
    )
    running.progress.report(f"the report is {snakemake.output.report}")
