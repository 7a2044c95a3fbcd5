"""Input and output of one method job; the input has no test label."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.graph import Graph
from brainfed.inpainting.fusing.fused import FusedGraph
from brainfed.runtime.score_kinds import ScoreKind
from brainfed.samples.kept.fitted_model import FittedModel
from brainfed.samples.labelled_subjects import LabelledSubjects
from brainfed.samples.reading.people import Phenotypes
from brainfed.samples.views import View

UNTESTED = -1
"""Fold of a subject that no fold tests: it has no label, or it trains in all folds."""
GENERATED = -2
"""Fold of a generated node."""

FloatArray = NDArray[np.float32] | NDArray[np.float64]
IntArray = NDArray[np.int64]


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
        privacy: one row for each institution that trained with differential privacy (`federation.privacy.spending`).
        models: the model of every fold, if the run keeps them (`Run.keeps_models`); empty otherwise.
    """

    scores: NDArray[np.float64]
    kind: ScoreKind
    round_scores: NDArray[np.float64] | None = None
    training_loss: NDArray[np.float64] | None = None
    counts: dict[str, int] = field(default_factory=dict)
    crossings: tuple[dict[str, int | str], ...] = ()
    patterns: NDArray[np.float32] | None = None
    contributions: NDArray[np.float32] | None = None
    clusters: IntArray | None = None
    shares: NDArray[np.float64] | None = None
    taught: NDArray[np.float64] | None = None
    member_scores: NDArray[np.float64] | None = None
    privacy: tuple[dict[str, int | float | str], ...] = ()
    models: tuple[FittedModel, ...] = ()
