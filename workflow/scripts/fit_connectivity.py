"""Compute features that are fitted on the training subjects of one fold."""

from brainfed.runtime.job import job

with job(snakemake):
    from brainfed.cohort.training_labels import training_labels
    from brainfed.imaging.connectivity import connectivity
    from brainfed.imaging.rfe import select_features
    from brainfed.imaging.series_files import load_series
    from brainfed.imaging.settings import FeatureSettings
    from brainfed.imaging.tangent import tangent_features
    from brainfed.runtime.artefacts import read_table, write_arrays

    files, params = snakemake.input, snakemake.params
    settings = FeatureSettings(**params.settings)
    people = read_table(files.split, ["subject", "institution", "fold"]).sort_values("subject")
    subjects, institution = list(people["subject"]), people["institution"]
    series, regions = load_series(files.series, subjects)
    metadata = {"subjects": subjects, "regions": list(regions), "settings": params.settings}
    if settings.connectivity == "tangent":
        training = (people["fold"] != params.fold).to_numpy()
        features = tangent_features(series, subjects, list(institution), training)
    else:
        features = connectivity(series, settings)
    if settings.selection == "rfe":
        labels = training_labels(files.split, files.participants, subjects, params.fold)
        selection = select_features(features, labels, institution.factorize()[0], settings.selected)
        features = features[:, selection.columns]
        metadata |= {"columns": selection.columns.tolist(), "crossings": list(selection.crossings)}
    write_arrays(snakemake.output.features, {"features": features}, metadata)
