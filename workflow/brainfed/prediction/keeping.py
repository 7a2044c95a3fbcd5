"""Keep a method's models: those of the folds, checked against its own scores, and one of everybody."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from brainfed.evaluation.metrics import auc, sd_of_chance
from brainfed.imaging.scans.region_table import read_region_table
from brainfed.imaging.settings import FeatureSettings
from brainfed.imaging.tangent import load_covariances
from brainfed.prediction.model_file import (
    EVERYBODY,
    KeptFile,
    Lengths,
    Part,
    fold_references,
    lengths_of_new_scans,
    part_name,
    spread_of,
    tangent_features,
    write_model,
)
from brainfed.runtime.arrays import IntArray
from brainfed.runtime.artefacts import read_arrays
from brainfed.runtime.entry import resolve
from brainfed.runtime.provenance import versions
from brainfed.runtime.settings import restore
from brainfed.samples.inputs import UNTESTED, FittedModel, MethodInputs, Outcome, Score, score_at

TOLERANCE = 1e-2
"""Largest difference of a kept model's scores from those of its training; reduced precision differs by less."""
BLOCK = 64
"""Training subjects whose scaled features are in memory at once."""


def keep(
    path: str | Path,
    kept: Mapping[str, Any],
    files: Any,
    inputs: MethodInputs,
    truth: IntArray,
    outcome: Outcome,
    train: Callable[[MethodInputs], Outcome],
) -> None:
    """Train on all labelled subjects, and write the models of everybody and of all folds.

    Args:
        kept: as `configuration.layout.cohort_inputs` makes it.
        truth: (n,) labels.
        outcome: of the method on `inputs`, with its models.

    Raises:
        ValueError: a kept model scores the tested subjects of its fold in another way than the method did.
    """
    about, settings = kept["about"], restore(FeatureSettings, kept["about"]["features"])
    references, reference = fold_references(
        files.covariances, files.split, files.included, inputs.institutions, settings, inputs.folds
    )
    everybody = train(_of_everybody(inputs, truth, files.covariances, settings, reference))
    whole = Part(everybody.models[0], reference)
    places, difference = _of_folds(
        inputs, outcome, about["settings"], resolve(kept["score"]), truth, by_institution=whole.needs_institution
    )
    if difference > TOLERANCE:
        raise ValueError(f"expected the kept models to give the scores of the folds, found differences of {difference}")
    regions = list(read_arrays(files.features[0], []).metadata["regions"])
    indices = read_region_table(files.regions)[0].tolist() if files.regions else []
    described = {
        **about,
        "kind": outcome.kind,
        "folds": inputs.folds,
        "institutions": list(inputs.institutions),
        "regions": regions,
        "indices": indices if len(indices) == len(regions) else [],
        "training": _counts(inputs, truth),
        "held_out": _held_out(inputs, outcome, truth),
        "distance": spread_of(places),
        "largest_difference": difference,
        "versions": versions(),
    }
    parts = {
        part_name(fold): Part(model, own)
        for fold, (model, own) in enumerate(zip(outcome.models, references, strict=True))
    }
    write_model(path, KeptFile(described, {**parts, EVERYBODY: whole}))


def _of_everybody(
    inputs: MethodInputs, truth: IntArray, covariances: Any, settings: FeatureSettings, reference: FittedModel
) -> MethodInputs:
    """The same subjects in one fold that tests nobody."""
    features = inputs.features[0]
    if settings.fitted:
        features = np.empty_like(features)
        for code in range(len(inputs.institutions)):
            own = inputs.members(code)
            own_covariances = load_covariances(covariances, [inputs.subjects[place] for place in own])
            features[own] = tangent_features(own_covariances, reference, code)
    return replace(inputs, fold=np.full(len(inputs.subjects), UNTESTED), labels=truth[None], features=(features,))


def _of_folds(
    inputs: MethodInputs,
    outcome: Outcome,
    settings: Mapping[str, Any],
    score: Score,
    truth: IntArray,
    *,
    by_institution: bool,
) -> tuple[list[Lengths], float]:
    """Lengths of all subjects' rows by the models of all folds; largest difference of a tested subject's score.

    The lengths are those of all institutions, or of each, whose model then scales its subjects in a way of its own.
    """
    places = range(len(inputs.institutions) if by_institution else 1)
    held_out, training = ([[np.empty(0)] for _ in places] for _ in range(2))
    difference = 0.0
    for fold, model in enumerate(outcome.models):
        features: Any = inputs.fold_features(fold)
        for code in range(len(inputs.institutions)):
            there, place = inputs.institution == code, code if by_institution else 0
            if (own := inputs.tested(fold) & there).any():
                scored = score_at(model, code, features[own], settings, score)
                held_out[place].append(np.linalg.norm(scored.rows, axis=1))
                difference = max(difference, float(np.abs(scored.scores - outcome.scores[fold, own]).max()))
            seen = np.flatnonzero(inputs.training(fold) & there)
            for block in np.split(seen, range(BLOCK, len(seen), BLOCK)) if len(seen) else ():
                rows = score_at(model, code, features[block], settings, score).rows
                training[place].append(np.linalg.norm(rows, axis=1))
    return [
        lengths_of_new_scans(
            np.concatenate(held_out[place]),
            np.concatenate(training[place]),
            inputs.folds,
            int(((truth >= 0) & ((inputs.institution == place) | (not by_institution))).sum()),
        )
        for place in places
    ], difference


def _held_out(inputs: MethodInputs, outcome: Outcome, truth: IntArray) -> dict[str, float] | None:
    """Mean AUC of the folds on their tested subjects, and the AUC that guessing exceeds once in forty cohorts as large.

    None of more than two classes, and where no fold tests both.
    """
    if inputs.classes > 2:
        return None
    folds = [np.flatnonzero((inputs.fold == fold) & (truth >= 0)) for fold in range(inputs.folds)]
    folds = [tested for tested in folds if len(set(truth[tested].tolist())) == 2]
    if not folds:
        return None
    areas = [auc(truth[tested], outcome.scores[inputs.fold[tested], tested, 1]) for tested in folds]
    counts = np.bincount(truth[np.concatenate(folds)], minlength=2).tolist()
    return {"auc": float(np.mean(areas)), "guessing": 0.5 + 1.96 * sd_of_chance(*counts)}


def _counts(inputs: MethodInputs, truth: IntArray) -> list[dict[str, Any]]:
    """Institution, and its number of labelled subjects of every class."""
    return [
        {"institution": name, "subjects": np.bincount(truth[own & (truth >= 0)], minlength=inputs.classes).tolist()}
        for code, name in enumerate(inputs.institutions)
        if (own := inputs.institution == code).any()
    ]
