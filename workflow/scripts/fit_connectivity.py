"""Compute features that are fitted on the training subjects of one fold."""

from brainfed.runtime.job import job

with job(snakemake):
    from brainfed.imaging.series_files import load_series
    from brainfed.imaging.tangent import tangent_features
    from brainfed.runtime.artefacts import read_table, write_arrays

    people = read_table(snakemake.input.split, ["subject", "institution", "fold"]).sort_values("subject")
    subjects = list(people["subject"])
    series, regions = load_series(snakemake.input.series, subjects)
    training = (people["fold"] != snakemake.params.fold).to_numpy()
    features = tangent_features(series, subjects, list(people["institution"]), training)
    write_arrays(
        snakemake.output.features,
        {"features": features},
        {"subjects": subjects, "regions": list(regions), "settings": snakemake.params.settings},
    )
