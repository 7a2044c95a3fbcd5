"""Train a generator of missing neighbours on one repeat, or on one of its folds."""

from brainfed.scripting import job

with job(snakemake, gpu=True) as running:
    from importlib.metadata import version

    from brainfed.graphs import GraphSettings
    from brainfed.runtime import Streams, canonical_json, resolve, restore, write_arrays, write_table, write_text
    from brainfed.runtime.jobs import Run, inputs_digest
    from brainfed.samples import inpainting_inputs
    from brainfed.scripting import joint_job, site_code

    params, files = running.params, snakemake.input
    inputs = inpainting_inputs(
        split=files.split,
        participants=files.participants or None,
        features=files.features,
        graph=files.graph,
        graph_settings=restore(GraphSettings, params.graph),
        protocol=params.protocol,
        part=snakemake.wildcards.part,
        streams=Streams(params.seed, params.repeat),
        correlations=params.correlations,
    )
    keys = ("code", "settings", "graph", "correlations", "protocol", "seed", "repeat", "threads")
    digest = inputs_digest(
        {key: vars(params)[key] for key in keys}
        | site_code(params)
        | {"part": inputs.part, "device": running.device.partition(":")[0], "torch": version("torch")},
        list(files),
    )
    joint = joint_job(params, snakemake.output.generator, running.device)
    inputs = joint.placed(inputs, f"{snakemake.output.generator}/{digest}")
    checkpoint = running.checkpoint(snakemake.output.generator, digest)
    trained = resolve(params.entry)(
        inputs,
        restore(resolve(params.settings_class), params.settings),
        Run(running.device, checkpoint=checkpoint, progress=running.progress),
    )
    write_arrays(
        snakemake.output.generator,
        trained.arrays,
        {
            "subjects": list(inputs.subjects),
            "institutions": list(inputs.institutions),
            "settings": params.settings,
        },
    )
    write_table(snakemake.output.history, trained.history)
    cost = {"counts": trained.counts, "crossings": list(trained.crossings), "held_out": list(trained.held_out)}
    write_text(snakemake.output.cost, canonical_json(cost) + "\n")
    write_text(snakemake.output.timing, canonical_json(running.timing()) + "\n")
    checkpoint.remove()
