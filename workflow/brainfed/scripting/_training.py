"""The job of one method in one repeat: its samples from the inputs, its training, and all that it leaves behind.

The jobs around a generator of missing neighbours get their samples here too.
"""

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from brainfed.engines import Row, crossings_of_files, in_order, sizes_of
from brainfed.runtime import IntArray, Streams, resolve, restore, write_arrays, write_json, write_table
from brainfed.runtime.jobs import Job, NamedFiles, Run, inputs_digest
from brainfed.samples import (
    GraphInputs,
    MethodInputs,
    Outcome,
    SeriesInputs,
    assemble,
    assemble_graphs,
    assemble_series,
    check,
    history_table,
    members_table,
    named_patterns,
    predictions_table,
)
from brainfed.scripting._joint import joint_job, site_code

if TYPE_CHECKING:
    from brainfed.inpainting import InpaintingInputs

Samples = MethodInputs | GraphInputs | SeriesInputs
DESCRIBING = ("code", "settings", "labels", "seed", "repeat", "threads")
"""The parameters that, with the inputs, decide about the result of a training."""


def train_method(running: Job, files: NamedFiles, outputs: NamedFiles) -> None:
    """Train a method on one repeat, all folds, score every tested subject, and write the outputs.

    Args:
        running: the job, with the parameters of the rule.
        files: `split`, `participants`, and the stages that the method needs; of kept models also what
            `prediction.model_file.keep` reads.
        outputs: predictions, history, members, privacy, patterns, cost, timing; of kept models also model.

    Raises:
        UserError: an input is damaged, or lacks a subject.
        ValueError: the method's outcome is not what its declaration promises.
    """
    params = running.params
    inputs, truth = samples_of(params, files)
    digest = inputs_digest(
        {key: vars(params)[key] for key in DESCRIBING}
        | site_code(params)
        | {"classes": len(params.classes), "device": running.device.partition(":")[0], "torch": version("torch")},
        list(files),
    )
    joint = joint_job(params, outputs.predictions, running.device)
    inputs = joint.placed(inputs, f"{outputs.predictions}/{digest}")
    checkpoint = running.checkpoint(outputs.predictions, digest)
    train, settings = resolve(params.entry), resolve(params.settings_class)(**params.settings)
    run = Run(running.device, checkpoint=checkpoint, progress=running.progress, keeps_models=bool(params.kept))
    outcome: Outcome = train(inputs, settings, run)
    check(inputs, outcome)
    write_table(outputs.predictions, predictions_table(inputs, outcome, truth, params.classes))
    write_table(outputs.history, history_table(inputs, outcome, truth))
    write_table(outputs.members, members_table(inputs, outcome, truth, params.classes))
    write_json(outputs.privacy, list(outcome.privacy))
    features = files.get("features", [])
    write_arrays(outputs.patterns, *named_patterns(outcome, features, params.classes, inputs.subjects))
    cost = {"counts": outcome.counts, "crossings": _crossings(files, inputs, outcome, remote=joint.link.remote)}
    write_json(outputs.cost, cost)
    write_json(outputs.timing, running.timing())
    if params.kept:
        further = replace(run, checkpoint=checkpoint.part("everybody"))
        resolve(params.kept["keep"])(
            outputs.model, params.kept, files, inputs, truth, outcome, lambda all: train(all, settings, further)
        )
    checkpoint.remove()


def samples_of(params: SimpleNamespace, files: NamedFiles) -> tuple[Samples, IntArray]:
    """The samples of the stages among the inputs, with test labels hidden, and separately the labels for the scores."""
    people: dict[str, Any] = {
        "split": files.split,
        "participants": files.participants,
        "labels": params.labels,
        "classes": len(params.classes),
        "folds": params.folds,
        "streams": Streams(params.seed, params.repeat),
    }
    if connectomes := files.get("connectomes", []):
        return assemble_graphs(connectomes=connectomes, **people)
    if series := files.get("series", []):
        return assemble_series(series=series[0], public=next(iter(files.get("public", [])), None), **people)
    rows: dict[str, Any] = {name: files.get(name, []) for name in ("features", "graphs", "fused")}
    return assemble(**rows, **people)


def _crossings(files: NamedFiles, inputs: Samples, outcome: Outcome, *, remote: bool) -> list[Row]:
    """What crossed institutions in the stages of the samples, in the graphs, and in the training."""
    sizes = sizes_of(inputs.institution)

    def of_stages(*names: str) -> Sequence[Row]:
        return crossings_of_files([file for name in names for file in files.get(name, [])], sizes, remote=remote)

    return in_order(of_stages("features", "connectomes", "series"), of_stages("graphs", "fused"), outcome.crossings)


def inpainting_samples(params: SimpleNamespace, files: NamedFiles, part: str) -> "InpaintingInputs":
    """The samples of a generator of missing neighbours, of one repeat or of one of its folds."""
    # Here, as a method without a generator does not need it.
    from brainfed.graphs import GraphSettings
    from brainfed.samples import inpainting_inputs

    return inpainting_inputs(
        split=files.split,
        participants=files.participants or None,
        features=files.features,
        graph=files.graph,
        graph_settings=restore(GraphSettings, params.graph),
        protocol=params.protocol,
        part=part,
        streams=Streams(params.seed, params.repeat),
        correlations=params.correlations,
    )
