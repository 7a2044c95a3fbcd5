"""Join the measures of every subject's scan, and compare the subjects' connectivity."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort.quality import crossings_of_likeness, measure_scans
    from brainfed.imaging import typicality
    from brainfed.imaging.series import load_runs, load_series
    from brainfed.runtime import read_table, read_tables, write_json, write_table

    files, params = snakemake.input, running.params
    quality = read_tables(files.quality, ["subject", "problem"])
    connectivity, crossings = None, ()
    if files.series:
        series, regions = load_series(list(files.series), list(quality.loc[quality["problem"] == "", "subject"]))
        connectivity = typicality(series, params.alike, load_runs(files.series) if params.by_run else {})
        people = read_table(files.participants, ["subject", "site"])
        crossings = crossings_of_likeness(people, list(series), len(regions))
    measures = measure_scans(
        read_table(files.participants, ["subject"])["subject"],
        quality,
        read_tables(files.coverage),
        params.min_coverage,
        connectivity,
    )
    write_table(snakemake.output.measures, measures)
    write_json(snakemake.output.crossings, {"crossings": list(crossings)})
