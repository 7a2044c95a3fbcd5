"""Compute features that are fitted on the training subjects of one fold."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort.splits import read_acquisition, training_labels
    from brainfed.imaging import FeatureSettings, load_covariances, tangent_ledger, tangent_of_fold
    from brainfed.runtime import read_arrays, read_table, write_arrays, write_json
    from brainfed.samples import read_features
    from brainfed.scripting import joint_job

    files, params = snakemake.input, running.params
    settings = FeatureSettings(**params.settings)
    people = read_table(files.split, ["subject", "institution", "fold"]).sort_values("subject")
    if settings.kind == "morphometry":  # A subject with a scan may lack measures.
        people = people[people["subject"].isin(read_arrays(files.whole, []).subjects)]
    subjects, institution = list(people["subject"]), people["institution"]
    training = (people["fold"] != params.fold).to_numpy()
    if files.whole:
        features, whole = read_features(files.whole, subjects), read_arrays(files.whole, []).metadata
        regions, crossings = whole["regions"], list(whole["crossings"])
    else:
        moments = load_covariances(files.covariances, subjects)
        regions, ledger = moments.regions, tangent_ledger(len(moments.regions))
        joint = joint_job(params, snakemake.output.features)
        features = tangent_of_fold(
            moments, list(institution), training, settings.reference, ledger, snakemake.threads, joint.link, joint.sites
        )
        crossings = list(ledger.rows())
    metadata = {"subjects": subjects, "regions": list(regions), "settings": params.settings}
    if settings.harmonise == "combat":
        from brainfed.imaging.fitted import harmonised

        scanned = read_acquisition(files.participants, subjects, settings.harmonise_covariates)
        even = harmonised(
            features, scanned.site, institution, training, scanned.covariates, bayes=settings.harmonise_bayes
        )
        features = even.features
        metadata |= {"harmonised": even.sites}
    if settings.reads_labels:
        from brainfed.imaging.fitted import select_features

        labels = training_labels(files.split, files.participants, subjects, params.fold)
        selection = select_features(features, labels, institution.factorize()[0], settings.selected)
        features = features[:, selection.columns]
        metadata |= {"columns": selection.columns.tolist()}
        crossings += selection.crossings
    metadata |= {"crossings": crossings}
    write_arrays(snakemake.output.features, {"features": features}, metadata)
    write_json(snakemake.output.timing, running.timing())
