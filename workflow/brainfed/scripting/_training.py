"""The job of one method in one repeat: its samples from the inputs, its training, and all that it leaves behind."""

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

from brainfed.engines import Row, crossings_of_files, in_order, sizes_of
from brainfed.runtime import IntArray, Streams, canonical_json, resolve, write_arrays, write_table, write_text
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
    write_text(outputs.privacy, canonical_json(list(outcome.privacy)) + "\n")
    features = files.get("features", [])
    write_arrays(outputs.patterns, *named_patterns(outcome, features, params.classes, inputs.subjects))
    cost = {"counts": outcome.counts, "crossings": _crossings(files, inputs, outcome, remote=joint.link.remote)}
    write_text(outputs.cost, canonical_json(cost) + "\n")
    write_text(outputs.timing, canonical_json(running.timing()) + "\n")
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
