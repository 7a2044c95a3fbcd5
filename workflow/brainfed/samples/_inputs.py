"""Subjects as nodes: views, fitted models, inputs of a method's job, generated nodes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs import Graph
from brainfed.inpainting import FusedGraph
from brainfed.runtime import BoolArray, Float32, Float64, FloatArray, IntArray, ScoreKind, UserError, read_arrays
from brainfed.samples._labelled_subjects import LabelledSubjects
from brainfed.samples._reading import Phenotypes

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class View:
    """One block of columns.

    Attributes:
        name: name in the config.
        columns: the block among the columns of the features.
        weight: its share of the mean squared norm of a subject, relative to the other views.
        centre: mean that is subtracted: of all training subjects, or of those of the subject's site.
        unseen_site: mean that is subtracted instead at a site without training subjects: of its own subjects, or of all
            training subjects.
        standardise: whether every column is divided by its standard deviation over the training subjects.
        clip: largest absolute value after that; None: no limit.
        present: (n,) mask of the subjects that have the view; the columns of the others are 0.
    """

    name: str
    columns: slice
    weight: float
    centre: Literal["all", "site"]
    unseen_site: Literal["own", "all"]
    standardise: bool
    clip: float | None
    present: BoolArray


def read_views(files: Sequence[Path | str], subjects: Sequence[str]) -> tuple[View, ...]:
    """The views in feature files, with masks in the order of `subjects`; empty if these have one view.

    Args:
        files: one file shared by the folds, or one a fold; views and missing subjects are the same in all.

    Raises:
        UserError: two files differ in their views, or in the subjects that lack one.
    """
    described = [read_arrays(path, []).metadata.get("views", []) for path in files]
    layouts = [
        [tuple(view[key] for key in ("name", "start", "stop", "lacking")) for view in views] for views in described
    ]
    for path, layout in zip(files, layouts, strict=True):
        if layout != layouts[0]:
            raise UserError(f"{path}: expected the views of {files[0]}, found others; delete both and run again.")
    return tuple(
        View(
            columns=slice(view["start"], view["stop"]),
            present=~np.isin(subjects, view["lacking"]),
            **{key: view[key] for key in ("name", "weight", "centre", "unseen_site", "standardise", "clip")},
        )
        for view in (described[0] if described else ())
    )


@dataclass(frozen=True)
class FittedModel:
    """The model of one fold. No array has an axis of subjects.

    Attributes:
        shared: arrays that are the same at all institutions.
        own: arrays (M, ...), one entry an institution; NaN at an institution that trained no model of its own.
    """

    shared: Arrays
    own: Arrays = field(default_factory=dict)

    def at(self, institution: int | None) -> dict[str, NDArray[Any]]:
        """The arrays that score a subject of an institution; None: a model without own arrays."""
        if institution is None and self.own:
            raise ValueError(f"expected an institution for {sorted(self.own)}, found none")
        own = {name: array[institution] for name, array in self.own.items()}
        return {**self.shared, **own}

    def helpers(self, institution: int | None) -> list[int | None]:
        """The institutions whose models score a subject of this one: itself, or all others if it trained none."""
        if institution is None or not self.own or _trained(self.own, institution):
            return [institution]
        count = len(next(iter(self.own.values())))
        return [code for code in range(count) if _trained(self.own, code)]


@dataclass(frozen=True)
class Scored:
    """Subjects, as a model scores them.

    Attributes:
        scores: (n, C), as of `Outcome`.
        rows: (n, d) features as the model multiplies them: centred and scaled.
    """

    scores: Float64
    rows: Float64


Score = Callable[[Arrays, Float32, Mapping[str, Any]], Scored]
"""Arrays of one institution, features (n, d), settings -> scores; named by `Method.capabilities.model`."""


def score_at(
    model: FittedModel, institution: int | None, features: Float32, settings: Mapping[str, Any], score: Score
) -> Scored:
    """Score subjects of one institution; without a model of its own, by the mean of the scores of all others.

    Raises:
        UserError: a score is not finite.
    """
    by_model = [score(model.at(code), features, settings) for code in model.helpers(institution)]
    scores, rows = (np.mean([getattr(each, name) for each in by_model], axis=0) for name in ("scores", "rows"))
    if not np.isfinite(scores).all():
        raise UserError("Model: expected finite scores, found others; the features are far beyond those of training.")
    return Scored(scores, rows)


def with_alike_shared(shared: Arrays, stacks: Arrays) -> FittedModel:
    """A model whose stacks (M, ...) that are the same at all institutions are kept once."""
    alike = {name: stack[0] for name, stack in stacks.items() if (stack == stack[:1]).all()}
    own = {name: stack for name, stack in stacks.items() if name not in alike}
    return FittedModel({**shared, **alike}, own)


def _trained(own: Arrays, institution: int) -> bool:
    return not any(np.isnan(array[institution]).any() for array in own.values())


# Input and output of one method job; the input has no test label.

UNTESTED = -1
"""Fold of a subject that no fold tests: it has no label, or it trains in all folds."""
GENERATED = -2
"""Fold of a generated node."""


@dataclass(frozen=True, kw_only=True)
class MethodInputs(LabelledSubjects):
    """Subjects as nodes: input of methods on population graphs or on features alone.

    `fold` is `UNTESTED` or `GENERATED` for subjects and nodes that no fold tests.

    Attributes:
        features: (n, d) imaging features shared by the folds, or one such array a fold.
        graphs: one graph shared by the folds, one a fold, or none.
        phenotypes: the non-imaging columns that the method declares (`Method.phenotypes`).
        fused: one graph with generated nodes shared by the folds, one a fold, or none.
        views: blocks of columns of the features that a method weighs; empty: the features are one view.
    """

    features: tuple[FloatArray, ...]
    graphs: tuple[Graph, ...]
    phenotypes: Phenotypes
    fused: tuple[FusedGraph, ...] = ()
    views: tuple[View, ...] = ()

    def fold_features(self, fold: int) -> FloatArray:
        """The (n, d) features that fold `fold` uses."""
        return self.features[fold if len(self.features) > 1 else 0]

    def subjects_among(self, nodes: IntArray) -> int:
        """Number of these nodes that are subjects, labelled or not."""
        return int((self.fold[nodes] > GENERATED).sum())


@dataclass(frozen=True)
class Outcome:
    """The output of a method.

    Attributes:
        scores: (F, n, C), finite where the subject is tested in that fold, NaN elsewhere; the predicted class has
            the largest score.
        kind: `probability`, or `margin`, above 0 for a predicted patient of two classes.
        round_scores: (T, F, n, C) the same after every round, for the curves; None without rounds.
        training_loss: (T, M, F) mean local training loss of the round; None without rounds.
        counts: numbers of parameters, floating-point operations and rounds.
        crossings: one row for each kind of tensor that crossed institutions.
        patterns: (F, K, d) of a linear model of K classes (1 for two), from its training subjects: change of every
            feature along with the score, in units of the score's standard deviation; None of other models.
        contributions: (n, K, V) of a linear model on V views: the part of every view in the margin of each tested
            subject, but for a constant of the model; NaN for other subjects. None of other models and without views.
        clusters: (T, F, M) number of each institution's cluster after every round; None without clusters.
        shares: (T, F, M) weight of each institution in the server's mean of a round; None where it is given by the
            numbers of institutions or subjects.
        taught: (T, F) share of the visits of public samples that institutions taught, in every round; None without
            public samples.
        member_scores: (F, n, C) scores, by the final model of the fold, of the subjects that trained in it, NaN
            elsewhere; for the audit. None where a method gives none.
        privacy: one row for each institution that trained with differential privacy (`federation._accounting`).
        models: the model of every fold, if the run keeps them (`Run.keeps_models`); empty otherwise.
    """

    scores: Float64
    kind: ScoreKind
    round_scores: Float64 | None = None
    training_loss: Float64 | None = None
    counts: dict[str, int] = field(default_factory=dict)
    crossings: tuple[dict[str, int | str], ...] = ()
    patterns: Float32 | None = None
    contributions: Float32 | None = None
    clusters: IntArray | None = None
    shares: Float64 | None = None
    taught: Float64 | None = None
    member_scores: Float64 | None = None
    privacy: tuple[dict[str, int | float | str], ...] = ()
    models: tuple[FittedModel, ...] = ()


# Generated nodes as further nodes of the training graph: no label, tested in no fold (FedNI Sec. III-C.2).


def with_generated(inputs: MethodInputs) -> MethodInputs:
    """The same inputs over n + g nodes: the subjects first, then the generated nodes.

    If every fold has a fused graph of its own, an institution gets as many nodes as its largest fold needs. In the
    other folds the unused nodes have no edge and zero features.
    """
    subjects = len(inputs.subjects)
    counts = [np.bincount(fused.institution, minlength=len(inputs.institutions)) for fused in inputs.fused]
    places = np.max(counts, axis=0)
    institution = np.repeat(np.arange(len(inputs.institutions)), places)
    positions = [_positions(fused, places) + subjects for fused in inputs.fused]
    more = len(institution)
    return replace(
        inputs,
        subjects=(*inputs.subjects, *(f"generated-{number}" for number in range(more))),
        institution=np.concatenate([inputs.institution, institution]),
        fold=np.concatenate([inputs.fold, np.full(more, GENERATED)]),
        labels=np.pad(inputs.labels, ((0, 0), (0, more)), constant_values=-1),
        features=tuple(_features(inputs, positions, more)) if more else inputs.features,
        graphs=tuple(
            _graph(fused, place, subjects, subjects + more)
            for fused, place in zip(inputs.fused, positions, strict=True)
        ),
        phenotypes=inputs.phenotypes.with_unknown(more),
        fused=(),
    )


def without_generated(outcome: Outcome, subjects: int) -> Outcome:
    """The outcome for the subjects alone."""
    rounds = None if outcome.round_scores is None else outcome.round_scores[:, :, :subjects]
    members = None if outcome.member_scores is None else outcome.member_scores[:, :subjects]
    return replace(outcome, scores=outcome.scores[:, :subjects], round_scores=rounds, member_scores=members)


def _positions(fused: FusedGraph, places: IntArray) -> IntArray:
    """(g,) position of each generated node among all, of which institutions have `places` (M,) in their order."""
    start = np.concatenate([[0], np.cumsum(places)])
    positions = np.zeros(len(fused.institution), dtype=np.int64)
    for institution in range(len(places)):
        own = np.flatnonzero(fused.institution == institution)
        positions[own] = start[institution] + np.arange(len(own))
    return positions


def _features(inputs: MethodInputs, positions: Sequence[IntArray], more: int) -> Iterator[FloatArray]:
    subjects = len(inputs.subjects)
    for fold in range(max(len(inputs.features), len(inputs.fused))):
        own, index = inputs.fold_features(fold), fold if len(inputs.fused) > 1 else 0
        rows: Float32 = np.zeros((subjects + more, own.shape[1]), dtype=np.float32)
        rows[:subjects] = own
        rows[positions[index]] = inputs.fused[index].features
        yield rows


def _graph(fused: FusedGraph, position: IntArray, subjects: int, nodes: int) -> Graph:
    place = np.concatenate([np.arange(subjects), position])
    row, column = place[fused.row], place[fused.column]
    order = np.lexsort((column, row))
    return Graph(row[order], column[order], fused.weight[order], nodes)
