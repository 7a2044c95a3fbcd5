"""Write the report: one HTML file."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.papers import BESIDE, PAPERS
    from brainfed.reporting import read_outline, write_report

    write_report(
        read_outline(running.params.outline, BESIDE),
        list(snakemake.input.captions),
        [path for path in snakemake.input.results if path.startswith("results/")],
        snakemake.output.report,
        PAPERS,
    )
    running.progress.report(f"the report is {snakemake.output.report}")
