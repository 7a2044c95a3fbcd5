"""Generate missing neighbours and join them to the population graph."""

from brainfed.scripting import job

with job(snakemake, gpu=True) as running:
    from dataclasses import fields

    from brainfed.inpainting import FusingSettings, crossings_of, fuse
    from brainfed.inpainting.fedni.drawing import warn_of_sites
    from brainfed.runtime import read_arrays, resolve, restore, write_arrays, write_json
    from brainfed.runtime.jobs import Run
    from brainfed.samples import read_cut
    from brainfed.scripting import inpainting_samples, joint_job

    params, files = running.params, snakemake.input
    inputs = inpainting_samples(params, files, snakemake.wildcards.part)
    inputs = joint_job(params, snakemake.output.fused, running.device).placed(inputs, snakemake.output.fused)
    generator = resolve(params.entry)(
        inputs,
        restore(resolve(params.settings_class), params.inpainting),
        read_arrays(files.generator),
        Run(running.device, progress=running.progress),
    )
    if not params.random_institutions:
        warn_of_sites(inputs, params.inpainting.get("count", "printed"))
    settings = restore(FusingSettings, params.settings)
    cut = read_cut(files.graph, inputs.subjects) if settings.nodes == "true" else None
    fused = fuse(inputs, generator, settings, params.max_generated, cut)
    write_arrays(
        snakemake.output.fused,
        {field.name: getattr(fused, field.name) for field in fields(fused)},
        {
            "subjects": list(inputs.subjects),
            "settings": params.settings,
            "crossings": [*read_arrays(files.graph, []).metadata["crossings"], *crossings_of(inputs, fused, settings)],
        },
    )
    write_json(snakemake.output.timing, running.timing())
