"""Build the population graph of one repeat, or of one of its folds."""

from brainfed.runtime.job import job

with job(snakemake):
    import numpy as np

    from brainfed.graphs.population import build_graph
    from brainfed.graphs.settings import GraphSettings
    from brainfed.runtime.artefacts import read_arrays, write_arrays
    from brainfed.runtime.streams import Streams
    from brainfed.training.assemble import align, phenotypes_of, read_people

    people = read_people(snakemake.input.split, snakemake.input.participants)
    subjects = list(people["subject"])
    phenotypes = phenotypes_of(people)
    names = sorted(people["institution"].unique())
    path = snakemake.input.features
    features = align(read_arrays(path, ["features"]), "features", subjects, path)
    inductive = snakemake.params.protocol == "inductive"
    graph = build_graph(
        np.asarray(features, dtype=np.float32),
        people["institution"].map({name: code for code, name in enumerate(names)}).to_numpy(np.int64),
        site=phenotypes.site,
        sex=phenotypes.sex,
        age=phenotypes.age,
        settings=GraphSettings(**snakemake.params.settings),
        streams=Streams(snakemake.params.seed, snakemake.params.repeat),
        training=(people["fold"] != snakemake.params.fold).to_numpy() if inductive else None,
    )
    write_arrays(
        snakemake.output.graph,
        {"row": graph.row, "column": graph.column, "weight": graph.weight, "embedding": graph.embedding},
        {"subjects": subjects, "settings": snakemake.params.settings, "sigma": list(graph.sigma)},
    )
