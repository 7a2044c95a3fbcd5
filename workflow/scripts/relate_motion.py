"""Correlate every connection with motion over the included subjects."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.imaging import relate_motion
    from brainfed.imaging.series import load_runs, load_series
    from brainfed.runtime import read_table, write_table

    files = snakemake.input
    included = read_table(files.included, ["subject", "included"])
    measures = read_table(files.measures, ["subject", "mean_fd"])
    participants = read_table(files.participants, ["subject", "site"])
    moved = measures[measures["subject"].isin(included.loc[included["included"], "subject"])].dropna(subset="mean_fd")
    moved = moved[["subject", "mean_fd"]].merge(participants[["subject", "site"]], on="subject", validate="one_to_one")
    moved = moved.sort_values("subject", ignore_index=True)
    moved = moved if files.series else moved.iloc[:0]
    series, regions = load_series(list(files.series), list(moved["subject"]))
    runs = load_runs(files.series) if running.params.by_run else {}
    write_table(snakemake.output.connections, relate_motion(series, regions, moved, runs))
