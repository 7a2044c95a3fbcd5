"""Compute the label-free connectivity features of every subject with a usable series."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.imaging import FeatureSettings, connectivity
    from brainfed.imaging.series import load_runs, load_series
    from brainfed.runtime import UserError, read_tables, write_arrays

    quality = read_tables(snakemake.input.quality, ["subject", "problem"])
    subjects = sorted(quality.loc[quality["problem"] == "", "subject"])
    if not subjects:
        raise UserError(
            f"Connectivity: expected a usable series among {len(quality)}, found none (first: "
            f"{quality['problem'].iloc[0]}); fix the files or the settings that they are held against."
        )
    series, regions = load_series(snakemake.input.series, subjects)
    settings = running.params.settings
    runs = load_runs(snakemake.input.series) if running.params.by_run else {}
    features = connectivity({subject: series[subject] for subject in subjects}, FeatureSettings(**settings), runs)
    write_arrays(
        snakemake.output.features,
        {"features": features},
        {"subjects": subjects, "regions": list(regions), "settings": settings, "crossings": []},
    )
