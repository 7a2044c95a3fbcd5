"""Correlate every connection with motion over the included subjects."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort.quality import included_subjects
    from brainfed.imaging import relate_motion
    from brainfed.imaging.series import load_runs, load_series
    from brainfed.runtime import read_table, write_table

    files = snakemake.input
    measures = read_table(files.measures, ["subject", "mean_fd"])[["subject", "mean_fd"]]
    sites = read_table(files.participants, ["subject", "site"])[["subject", "site"]]
    moved = measures[measures["subject"].isin(included_subjects(files.included))].dropna(subset="mean_fd")
    moved = moved.merge(sites, on="subject", validate="one_to_one").sort_values("subject", ignore_index=True)
    moved = moved if files.series else moved.iloc[:0]
    series, regions = load_series(list(files.series), list(moved["subject"]))
    runs = load_runs(files.series) if running.params.by_run else {}
    write_table(snakemake.output.connections, relate_motion(series, regions, moved, runs))
