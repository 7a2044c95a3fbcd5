"""Compute tangent features of every included subject, at the reference of all of them or at the identity."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort.quality import included_subjects
    from brainfed.imaging import crossings_of_all, load_covariances, tangent_at_identity, tangent_of_all
    from brainfed.runtime import write_arrays
    from brainfed.scripting import joint_job

    moments = load_covariances(snakemake.input.covariances, sorted(included_subjects(snakemake.input.included)))
    alone = running.params.settings["reference"] == "identity"
    link = joint_job(running.params, snakemake.output.features).link
    write_arrays(
        snakemake.output.features,
        {"features": tangent_at_identity(moments) if alone else tangent_of_all(moments, snakemake.threads, link)},
        {
            "subjects": list(moments.subjects),
            "regions": list(moments.regions),
            "settings": running.params.settings,
            "crossings": [] if alone else list(crossings_of_all(len(moments.regions))),
        },
    )
