"""Write the report: one HTML file."""

from brainfed.runtime.job import job

with job(snakemake):
    from brainfed.reporting.document import write_report
    from brainfed.reporting.outline import read_outline

    write_report(read_outline(snakemake.params.outline), list(snakemake.input.captions), snakemake.output.report)
