"""Build the population graph of one repeat, or of one of its folds."""

from brainfed.scripting import job

with job(snakemake) as running:
    import numpy as np

    from brainfed.cohort.splits import training_labels
    from brainfed.graphs import GraphSettings, build_graph, known_phenotypes
    from brainfed.runtime import Streams, write_arrays, write_json
    from brainfed.samples import phenotypes_of, read_features, read_people

    files, params = snakemake.input, running.params
    people = read_people(files.split, files.participants or None).drop(columns="diagnosis", errors="ignore")
    subjects = list(people["subject"])
    phenotypes = phenotypes_of(people)
    names = sorted(people["institution"].unique())
    columns = {name: phenotypes.or_unknown(name, len(subjects)) for name in ("site", "sex", "age")}
    settings = known_phenotypes(GraphSettings(**params.settings), **columns)
    inductive = params.protocol == "inductive"
    graph = build_graph(
        read_features(files.features, subjects),
        people["institution"].map({name: code for code, name in enumerate(names)}).to_numpy(np.int64),
        **columns,
        settings=settings,
        streams=Streams(params.seed, params.repeat),
        training=(people["fold"] != params.fold).to_numpy() if inductive else None,
        labels=training_labels(files.split, files.participants, subjects, params.fold) if settings.fitted else None,
    )
    arrays = {"row": graph.row, "column": graph.column, "weight": graph.weight, "embedding": graph.embedding}
    if graph.cut is not None:
        arrays |= {"cut_row": graph.cut.row, "cut_column": graph.cut.column}
        arrays["cut_weight"] = graph.cut.weight.astype(np.float32)
    metadata = {"subjects": subjects, "settings": params.settings, "sigma": list(graph.sigma)}
    metadata["crossings"] = list(graph.crossings)
    if graph.selected:
        metadata["selected"] = [columns.tolist() for columns in graph.selected]
    write_arrays(snakemake.output.graph, arrays, metadata)
    write_json(snakemake.output.timing, running.timing())
