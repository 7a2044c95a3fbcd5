"""Compare generated neighbours with those that were cut away."""

from dataclasses import asdict

from brainfed.scripting.job import job

with job(snakemake) as running:
    from brainfed.graphs.settings import GraphSettings
    from brainfed.inpainting.fidelity import fidelity
    from brainfed.inpainting.inputs import read_fused
    from brainfed.runtime.artefacts import canonical_json, write_text
    from brainfed.runtime.settings import restore
    from brainfed.runtime.streams import Streams
    from brainfed.samples.inpainting import inpainting_inputs, read_cut

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
