"""Train one method on one repeat, all folds, and score every tested subject."""

from brainfed.scripting.job import job

with job(snakemake, gpu=True) as running:
    from dataclasses import replace
    from importlib.metadata import version

    from brainfed.engines.stacked.crossings import crossings_of_files, in_order, sizes_of
    from brainfed.runtime.artefacts import canonical_json, write_arrays, write_table, write_text
    from brainfed.runtime.entry import resolve
    from brainfed.runtime.jobs.checkpoints import inputs_digest
    from brainfed.runtime.jobs.run import Run
    from brainfed.runtime.streams import Streams
    from brainfed.samples.assemble import assemble, assemble_graphs, assemble_series
    from brainfed.samples.results import check, history_table, members_table, named_patterns, predictions_table
    from brainfed.scripting.at_site import link_of, placed

    params, files = running.params, snakemake.input
    people = {
        "split": files.split,
        "participants": files.participants,
        "labels": params.labels,
        "classes": len(params.classes),
        "folds": params.folds,
        "streams": Streams(params.seed, params.repeat),
    }
    features, connectomes, series = (files.get(name, []) for name in ("features", "connectomes", "series"))
    if connectomes:
        inputs, truth = assemble_graphs(connectomes=connectomes, **people)
    elif series:
        public = next(iter(files.get("public", [])), None)
        inputs, truth = assemble_series(series=series[0], public=public, **people)
    else:
        graphs, fused = files.get("graphs", []), files.get("fused", [])
        inputs, truth = assemble(features=features, graphs=graphs, fused=fused, **people)
    digest = inputs_digest(
        {key: vars(params)[key] for key in ("code", "settings", "labels", "seed", "repeat", "threads")}
        | {"classes": len(params.classes), "device": running.device.partition(":")[0], "torch": version("torch")},
        list(files),
    )
    link = link_of(params, snakemake.output.predictions, running.device)
    inputs = placed(inputs, params, link, f"{snakemake.output.predictions}/{digest}")
    checkpoint = running.checkpoint(snakemake.output.predictions, digest)
    entry, settings = resolve(params.entry), resolve(params.settings_class)(**params.settings)
    run = Run(running.device, checkpoint=checkpoint, progress=running.progress, keeps_models=bool(params.kept))
    outcome = entry(inputs, settings, run)
    check(inputs, outcome)
    sizes = sizes_of(inputs.institution)
    write_table(snakemake.output.predictions, predictions_table(inputs, outcome, truth, params.classes))
    write_table(snakemake.output.history, history_table(inputs, outcome, truth))
    write_table(snakemake.output.members, members_table(inputs, outcome, truth, params.classes))
    write_text(snakemake.output.privacy, canonical_json(list(outcome.privacy)) + "\n")
    write_arrays(
        snakemake.output.patterns,
        *named_patterns(outcome, features, params.classes, inputs.subjects),
    )
    write_text(
        snakemake.output.cost,
        canonical_json(
            {
                "counts": outcome.counts,
                "crossings": in_order(
                    crossings_of_files([*features, *connectomes, *series], sizes, apart=link.apart),
                    crossings_of_files([*files.get("graphs", []), *files.get("fused", [])], sizes, apart=link.apart),
                    outcome.crossings,
                ),
            }
        )
        + "\n",
    )
    write_text(snakemake.output.timing, canonical_json(running.timing()) + "\n")
    if params.kept:
        further = replace(run, checkpoint=checkpoint.part("everybody"))
        resolve(params.kept["keep"])(
            snakemake.output.model,
            params.kept,
            files,
            inputs,
            truth,
            outcome,
            lambda all: entry(all, settings, further),
        )
    checkpoint.remove()
