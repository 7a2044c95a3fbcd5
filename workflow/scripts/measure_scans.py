"""Join the measures of every subject's scan, and compare the subjects' connectivity."""

from brainfed.scripting import job

with job(snakemake) as running:
    import pandas as pd

    from brainfed.cohort.quality import crossings_of_likeness, measure_scans
    from brainfed.imaging import typicality
    from brainfed.imaging.series import load_runs, load_series
    from brainfed.runtime import canonical_json, read_table, write_table, write_text

    files, params = snakemake.input, running.params
    quality = pd.concat([read_table(path, ["subject", "problem"]) for path in files.quality], ignore_index=True)
    connectivity, crossings = None, ()
    if files.series:
        series, regions = load_series(list(files.series), list(quality.loc[quality["problem"] == "", "subject"]))
        connectivity = typicality(series, params.alike, load_runs(files.series) if params.by_run else {})
        people = read_table(files.participants, ["subject", "site"])
        crossings = crossings_of_likeness(people, list(series), len(regions))
    measures = measure_scans(
        read_table(files.participants, ["subject"])["subject"],
        quality,
        pd.concat([read_table(path) for path in files.coverage], ignore_index=True),
        params.min_coverage,
        connectivity,
    )
    write_table(snakemake.output.measures, measures)
    write_text(snakemake.output.crossings, canonical_json({"crossings": list(crossings)}) + "\n")
