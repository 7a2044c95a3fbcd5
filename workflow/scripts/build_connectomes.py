"""Build the connectome of every included subject as a graph of regions, of all or of one fold."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.graphs import ConnectomeSettings, read_connectivity, write_connectomes
    from brainfed.runtime import canonical_json, read_arrays, read_table, write_text

    files, settings = snakemake.input, running.params.settings
    included = read_table(files.included, ["subject", "included"])
    measured = read_connectivity(files.features, set(included.loc[included["included"], "subject"]))
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
        write_text(timing, canonical_json(running.timing()) + "\n")
