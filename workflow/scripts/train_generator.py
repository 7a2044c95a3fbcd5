"""Train a generator of missing neighbours on one repeat, or on one of its folds."""

from brainfed.scripting import job

with job(snakemake, gpu=True) as running:
    from importlib.metadata import version

    from brainfed.runtime import resolve, restore, write_arrays, write_json, write_table
    from brainfed.runtime.jobs import Run, inputs_digest
    from brainfed.scripting import inpainting_samples, joint_job, site_code

    params, files = running.params, snakemake.input
    inputs = inpainting_samples(params, files, snakemake.wildcards.part)
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
        {"subjects": inputs.subjects, "institutions": inputs.institutions, "settings": params.settings},
    )
    write_table(snakemake.output.history, trained.history)
    cost = {"counts": trained.counts, "crossings": list(trained.crossings), "held_out": list(trained.held_out)}
    write_json(snakemake.output.cost, cost)
    write_json(snakemake.output.timing, running.timing())
    checkpoint.remove()
