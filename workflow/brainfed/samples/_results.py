"""Tables and patterns of a method's outcome, for all later steps."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainfed.runtime import (
    COMPLEMENT,
    Float32,
    Float64,
    IntArray,
    ScoreKind,
    predicted_classes,
    read_arrays,
    score_columns,
)
from brainfed.samples._inputs import MethodInputs, Outcome
from brainfed.samples._labelled_subjects import LabelledSubjects
from brainfed.samples._series import PublicSeriesInputs

NONE = np.zeros((0, 0, 0), dtype=np.float32)
"""Patterns of a method that is no linear model."""


def check(inputs: LabelledSubjects, outcome: Outcome) -> None:
    """Check that every tested subject has a finite score and no other subject has one, and patterns their shape.

    Raises:
        ValueError: the method broke its contract.
    """
    if outcome.kind not in COMPLEMENT:
        raise ValueError(f"kind: expected one of {', '.join(sorted(COMPLEMENT))}, found {outcome.kind!r}")
    tested = np.arange(inputs.folds)[:, None] == inputs.fold[None, :]
    expected = np.repeat(tested[..., None], inputs.classes, axis=-1)
    if outcome.scores.shape != expected.shape or not np.array_equal(np.isfinite(outcome.scores), expected):
        raise ValueError(
            "a method must return one finite score a class for every tested subject of every fold, NaN elsewhere: "
            f"expected shape {expected.shape}, found {outcome.scores.shape}"
        )
    models = 1 if inputs.classes == 2 else inputs.classes
    patterns = outcome.patterns
    if patterns is not None and (patterns.shape[:-1] != (inputs.folds, models) or not np.isfinite(patterns).all()):
        expected_of = f"{inputs.folds} folds and {models} models"
        raise ValueError(f"expected finite patterns of {expected_of}, found {patterns.shape}")
    rounds = 0 if outcome.round_scores is None else len(outcome.round_scores)
    each = rounds, inputs.folds, len(inputs.institutions)
    for name, reported, shape, axes in (
        ("clusters", outcome.clusters, each, "rounds, folds and institutions"),
        ("shares", outcome.shares, each, "rounds, folds and institutions"),
        ("taught shares", outcome.taught, each[:2], "rounds and folds"),
    ):
        if reported is not None and reported.shape != shape:
            raise ValueError(f"expected {name} of {shape} {axes}, found {reported.shape}")
    _check_members(inputs, outcome)
    parts = outcome.contributions
    if parts is None:
        return
    views = inputs.views if isinstance(inputs, MethodInputs) else ()
    expected_parts = (len(inputs.subjects), models, len(views))
    tested_parts = np.broadcast_to(tested.any(axis=0)[:, None, None], expected_parts)
    if parts.shape != expected_parts or not np.array_equal(np.isfinite(parts), tested_parts):
        raise ValueError(
            f"expected finite contributions {expected_parts} of every tested subject and NaN elsewhere, found "
            f"{parts.shape}"
        )


def _check_members(inputs: LabelledSubjects, outcome: Outcome) -> None:
    """Check that every training subject has a finite score, if there are such scores, and no other subject has one."""
    scores, expected = outcome.member_scores, np.repeat((inputs.labels >= 0)[..., None], inputs.classes, axis=-1)
    if scores is not None and (scores.shape != expected.shape or not np.array_equal(np.isfinite(scores), expected)):
        raise ValueError(
            "expected one finite member score a class for every training subject of every fold, NaN elsewhere"
        )


def predictions_table(
    inputs: LabelledSubjects, outcome: Outcome, truth: IntArray, classes: Sequence[str] = ()
) -> pd.DataFrame:
    """One row for each tested subject.

    Args:
        truth: (n,) the labels.
        classes: names of the C classes in the order of their codes; empty: their codes.

    Returns:
        subject, institution, fold, score (of class 1; `score-NAME` for each of more than two classes), kind, label.
    """
    position = np.flatnonzero(inputs.fold >= 0)
    return _scored(inputs, outcome.scores, outcome.kind, inputs.fold[position], position, truth, classes)


def members_table(
    inputs: LabelledSubjects, outcome: Outcome, truth: IntArray, classes: Sequence[str] = ()
) -> pd.DataFrame:
    """One row for each fold and each subject that trained in it; empty where a method scores none.

    Returns:
        The columns of `predictions_table`, and `public` (bool, whether the server reads the subject itself in this
        fold); `fold` is the one in which the subject trained.
    """
    trained = inputs.labels >= 0 if outcome.member_scores is not None else np.zeros_like(inputs.labels, dtype=bool)
    fold, position = np.nonzero(trained)
    scores = outcome.scores if outcome.member_scores is None else outcome.member_scores
    public = inputs.public if isinstance(inputs, PublicSeriesInputs) else np.zeros_like(trained)
    table = _scored(inputs, scores, outcome.kind, fold, position, truth, classes)
    return table.assign(public=public[fold, position])


def _scored(
    inputs: LabelledSubjects,
    every: Float64,
    kind: ScoreKind,
    fold: IntArray,
    position: IntArray,
    truth: IntArray,
    classes: Sequence[str],
) -> pd.DataFrame:
    """A row for each fold and position, with the scores (F, n, C) there."""
    scores = every[fold, position]
    names = classes or [str(code) for code in range(inputs.classes)]
    columns = score_columns(names)
    if len(names) != inputs.classes:
        raise ValueError(f"expected names of {inputs.classes} classes, found {list(classes)}")
    return pd.DataFrame(
        {
            "subject": [inputs.subjects[index] for index in position],
            "institution": [inputs.institutions[code] for code in inputs.institution[position]],
            "fold": fold.astype(np.int16),
            **dict(zip(columns, scores[:, -len(columns) :].T, strict=True)),
            "kind": kind,
            "label": truth[position].astype(np.int8),
        }
    )


def history_table(inputs: LabelledSubjects, outcome: Outcome, truth: IntArray) -> pd.DataFrame:
    """One row a fold, institution and round; no rows without rounds.

    Returns:
        fold, institution, round, training_loss, test_loss, test_accuracy, cluster (null: none), weight (of the
        institution in the server's mean; NaN: not reported), taught (share of the visits of public samples that
        institutions taught, the same for all institutions; NaN: no public samples).
    """
    numbers = ("training_loss", "test_loss", "test_accuracy")
    types: dict[str, Any] = {"fold": np.int16, "institution": "str", "round": np.int32}
    types |= dict.fromkeys(numbers, float)
    types |= {"cluster": "Int32", "weight": float, "taught": float}
    return pd.DataFrame(list(_history(inputs, outcome, truth)), columns=list(types)).astype(types)


def _history(
    inputs: LabelledSubjects, outcome: Outcome, truth: IntArray
) -> Iterator[tuple[int, str, int, float, float, float, int | None, float, float]]:
    if outcome.round_scores is None or outcome.training_loss is None:
        return
    for fold in range(inputs.folds):
        for number, name in enumerate(inputs.institutions):
            tested = np.flatnonzero((inputs.fold == fold) & (inputs.institution == number))
            for index, scores in enumerate(outcome.round_scores):
                loss, accuracy = _fit(scores[fold, tested], truth[tested], outcome.kind)
                trained = float(outcome.training_loss[index, number, fold])
                cluster = None if outcome.clusters is None else int(outcome.clusters[index, fold, number])
                weight = np.nan if outcome.shares is None else float(outcome.shares[index, fold, number])
                taught = np.nan if outcome.taught is None else float(outcome.taught[index, fold])
                yield fold, name, index + 1, trained, loss, accuracy, cluster, weight, taught


def _fit(scores: Float64, label: IntArray, kind: ScoreKind) -> tuple[float, float]:
    """Mean cross-entropy of probabilities (n, C), or mean squared distance of margins from 1, and accuracy."""
    if len(label) == 0 or not np.isfinite(scores).all():
        return float("nan"), float("nan")
    own = scores[np.arange(len(label)), label]
    losses = np.square(1 - own) if kind == "margin" else -np.log(np.clip(own, 1e-12, 1))
    return float(losses.mean()), float((predicted_classes(scores, kind) == label).mean())


def named_patterns(
    outcome: Outcome, features: Sequence[Path | str], classes: Sequence[str] = (), subjects: Sequence[str] = ()
) -> tuple[dict[str, Float32], dict[str, Any]]:
    """Array and metadata of the file of patterns.

    Args:
        features: one file shared by the folds, or one a fold in order.
        classes: names of more than two classes.

    Returns:
        `patterns` (F, K, d), empty for a method without them. For a method with them also classes (names of the K
        models, empty for one); views, a list of name (empty for features without views), start, stop, regions and
        settings of each; and columns, for every fold and view the selected features, none without selection. With
        contributions of views also the array `contributions` (n, K, V), and subjects.
    """
    if outcome.patterns is None:
        return {"patterns": NONE}, {}
    folds, models, width = outcome.patterns.shape
    # Features without views are one view.
    described = [
        metadata.get("views") or [{"name": "", "start": 0, "stop": width, **metadata}]
        for metadata in (read_arrays(path, []).metadata for path in features)
    ]
    each = described if len(described) > 1 else described * folds
    views = [{key: view[key] for key in ("name", "start", "stop", "regions", "settings")} for view in each[0]]
    columns = [[view.get("columns") for view in own] for own in each]
    named = {"views": views, "columns": columns, "classes": list(classes) if models > 1 else []}
    if outcome.contributions is None:
        return {"patterns": outcome.patterns}, named
    return {"patterns": outcome.patterns, "contributions": outcome.contributions}, named | {"subjects": list(subjects)}
