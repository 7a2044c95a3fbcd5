"""Compare generated neighbours with those that were cut away."""

from dataclasses import asdict

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.inpainting import fidelity, read_fused
    from brainfed.runtime import write_json
    from brainfed.samples import read_cut
    from brainfed.scripting import inpainting_samples

    params, files = running.params, snakemake.input
    inputs = inpainting_samples(params, files, params.part)
    scored = fidelity(inputs, read_fused(files.fused, inputs.subjects), read_cut(files.graph, inputs.subjects))
    write_json(snakemake.output.fidelity, asdict(scored))
