"""Build the connectome of every included subject as a graph of regions, of all or of one fold."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort.quality import included_subjects
    from brainfed.graphs import ConnectomeSettings, read_connectivity, write_connectomes
    from brainfed.runtime import read_arrays, write_json

    files, settings = snakemake.input, running.params.settings
    measured = read_connectivity(files.features, set(included_subjects(files.included)))
    features = read_arrays(files.features, []).metadata
    write_connectomes(
        snakemake.output.connectomes,
        measured,
        ConnectomeSettings(**settings),
        {
            "regions": features["regions"],
            "settings": settings,
            "features": features["settings"],
            "crossings": features["crossings"],
        },
    )
    if timing := snakemake.output.get("timing"):
        write_json(timing, running.timing())
