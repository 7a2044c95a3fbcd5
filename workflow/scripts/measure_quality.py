"""Join the measures of scans with the motion of the phenotype table."""

from brainfed.scripting import job

with job(snakemake):
    from brainfed.cohort.quality import with_motion
    from brainfed.runtime import read_table, write_table

    motion = read_table(snakemake.input.participants, ["subject", "mean_fd", "fd_source"])
    write_table(snakemake.output.measures, with_motion(read_table(snakemake.input.measures), motion))
