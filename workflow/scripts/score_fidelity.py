"""Compare generated neighbours with those that were cut away."""

from dataclasses import asdict

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.graphs import GraphSettings
    from brainfed.inpainting import fidelity, read_fused
    from brainfed.runtime import Streams, canonical_json, restore, write_text
    from brainfed.samples import inpainting_inputs, read_cut

    params, files = running.params, snakemake.input
    inputs = inpainting_inputs(
        split=files.split,
        participants=files.participants or None,
        features=files.features,
        graph=files.graph,
        graph_settings=restore(GraphSettings, params.graph),
        protocol=params.protocol,
        part=params.part,
        streams=Streams(params.seed, params.repeat),
        correlations=params.correlations,
    )
    scored = fidelity(inputs, read_fused(files.fused, inputs.subjects), read_cut(files.graph, inputs.subjects))
    write_text(snakemake.output.fidelity, canonical_json(asdict(scored)) + "\n")
