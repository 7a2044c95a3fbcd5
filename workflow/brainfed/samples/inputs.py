"""What one method job is given, and what it returns: the border that no test label crosses."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.graph import Graph
from brainfed.inpainting.fusing.fused import FusedGraph
from brainfed.runtime.score_kinds import ScoreKind
from brainfed.runtime.streams import Streams
from brainfed.samples.people import Phenotypes

UNLABELLED = -1
"""In place of a fold: a subject without a label, tested in none."""
GENERATED = -2
"""In place of a fold: a generated node."""

FloatArray = NDArray[np.float32] | NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class MethodInputs:
    """One repeat of one cohort, subjects in ascending order of their id.

    Attributes:
        subjects: n ids.
        institutions: M names; `institution` (n,) indexes them.
        fold: (n,) the fold in which each subject is tested, 0 ... F - 1; `UNLABELLED`, `GENERATED`.
        labels: (F, n) in {0, ..., C - 1}, and -1 where the subject is tested in that fold, or in none: a method
            never holds the label of a subject that it is about to score.
        features: (n, d) imaging features shared by the folds, or one such array a fold.
        graphs: one graph shared by the folds, one a fold, or none.
        streams: the repeat's random streams.
        fused: one graph with generated nodes shared by the folds, one a fold, or none.
        classes: C; of two, 1 is the patient.
    """

    subjects: tuple[str, ...]
    institutions: tuple[str, ...]
    institution: IntArray
    fold: IntArray
    labels: IntArray
    features: tuple[FloatArray, ...]
    graphs: tuple[Graph, ...]
    phenotypes: Phenotypes
    streams: Streams
    fused: tuple[FusedGraph, ...] = ()
    classes: int = 2

    @property
    def folds(self) -> int:
        """Number of folds F."""
        return int(self.labels.shape[0])

    def fold_features(self, fold: int) -> FloatArray:
        """The (n, d) features that fold `fold` uses."""
        return self.features[fold if len(self.features) > 1 else 0]

    def tested(self, fold: int) -> NDArray[np.bool_]:
        """(n,) mask of the subjects that are scored in `fold`."""
        return np.asarray(self.fold == fold)

    def training(self, fold: int) -> NDArray[np.bool_]:
        """(n,) mask of the subjects whose label the method may use in `fold`."""
        return np.asarray(self.labels[fold] >= 0)

    def members(self, institution: int) -> IntArray:
        """Positions of an institution's subjects."""
        return np.flatnonzero(self.institution == institution)

    def subjects_among(self, nodes: IntArray) -> int:
        """How many of these nodes are people, labelled or not."""
        return int((self.fold[nodes] > GENERATED).sum())


@dataclass(frozen=True)
class Outcome:
    """What a method returns.

    Attributes:
        scores: (F, n, C), finite where the subject is tested in that fold, NaN elsewhere; the largest is of the
            predicted class.
        kind: `probability`, or `margin`, which a patient of two classes has above 0.
        round_scores: (T, F, n, C) the same after every round, for the curves; None without rounds.
        training_loss: (T, M, F) mean local training loss of the round; None without rounds.
        counts: what was counted: parameters, floating-point operations, rounds.
        crossings: one row for each kind of tensor that crossed institutions.
    """

    scores: NDArray[np.float64]
    kind: ScoreKind
    round_scores: NDArray[np.float64] | None = None
    training_loss: NDArray[np.float64] | None = None
    counts: dict[str, int] = field(default_factory=dict)
    crossings: tuple[dict[str, int | str], ...] = ()
