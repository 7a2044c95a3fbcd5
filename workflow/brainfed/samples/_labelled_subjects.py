"""Base of every kind of samples: subjects with an institution, a fold, and labels; test labels are hidden.

Kinds of samples differ in their data: nodes of population graphs (`samples._inputs`) are the first kind.
"""

from dataclasses import dataclass

import numpy as np

from brainfed.federation import TOGETHER, Link
from brainfed.runtime import COMPLEMENT, BoolArray, Float64, IntArray, ScoreKind, Streams, UserError

HIDDEN = -1
"""Label of a subject that is tested in the fold or has no label."""


def hidden_labels(truth: IntArray, fold: IntArray, folds: int = 0) -> IntArray:
    """(F, n) labels that a method may see in each fold: `HIDDEN` if this fold tests the subject, or it has no label.

    Args:
        truth: (n,) labels in {0, ..., C - 1}, negative where unknown.
        fold: (n,) the fold 0 ... F - 1 that tests each subject; negative: no fold, it trains in all if it has a label.
        folds: F; 0: the last fold tests one of these subjects.
    """
    tested = np.arange(folds or fold.max() + 1)[:, None] == fold[None, :]
    return np.where(tested | (truth < 0)[None, :], HIDDEN, truth[None, :])


@dataclass(frozen=True)
class LabelledSubjects:
    """The subjects of one repeat of one cohort, in ascending order of their id.

    Attributes:
        subjects: n ids.
        institutions: M names; `institution` (n,) indexes them.
        fold: (n,) the fold that tests each subject, 0 ... F - 1; negative: no fold.
        labels: (F, n) in {0, ..., C - 1}, and -1 if that fold tests the subject, or it has no label: a method
            never has the label of a subject that it scores.
        classes: number of classes C; of two, 1 is the patient.
        link: to institutions whose subjects are not here; in a simulation all are.

    Raises:
        ValueError: a label of a tested subject is not hidden.
        UserError: a label is no class.
    """

    subjects: tuple[str, ...]
    institutions: tuple[str, ...]
    institution: IntArray
    fold: IntArray
    labels: IntArray
    streams: Streams
    classes: int = 2
    link: Link = TOGETHER

    def __post_init__(self) -> None:
        """Reject a label that would leak."""
        tested = np.arange(self.folds)[:, None] == self.fold[None, :]
        if (self.labels[tested] != HIDDEN).any():
            raise ValueError("a method must not have the label of a subject that it scores: see hidden_labels")
        wrong = (self.labels < HIDDEN) | (self.labels >= self.classes)
        if wrong.any():
            fold, subject = np.argwhere(wrong)[0].tolist()
            raise UserError(
                f"labels of fold {fold}: expected 0 to {self.classes - 1}, or {HIDDEN} where hidden, found "
                f"{self.labels[fold, subject]} of subject {self.subjects[subject]!r}; number the classes from 0."
            )

    @property
    def folds(self) -> int:
        """Number of folds F."""
        return int(self.labels.shape[0])

    def tested(self, fold: int) -> BoolArray:
        """(n,) mask of the subjects that are scored in `fold`."""
        return np.asarray(self.fold == fold)

    def training(self, fold: int) -> BoolArray:
        """(n,) mask of the subjects whose label the method may use in `fold`."""
        return np.asarray(self.labels[fold] >= 0)

    @property
    def unseen(self) -> BoolArray:
        """(M, F) whether an institution has subjects here and trains nothing in the fold: it is left out."""
        unseen = np.zeros((len(self.institutions), self.folds), dtype=np.bool_)
        unseen[self.institution] = True
        for fold in range(self.folds):
            unseen[self.institution[self.training(fold)], fold] = False
        return unseen

    def members(self, institution: int) -> IntArray:
        """Positions of an institution's subjects."""
        return np.flatnonzero(self.institution == institution)


def of_two_classes(score: Float64, kind: ScoreKind) -> Float64:
    """Scores (..., 2) of both classes from scores (...) of the patient class: 1 - p and p, or -m and m."""
    return np.stack([COMPLEMENT[kind] - score, score], axis=-1)


def require_training_subjects(inputs: LabelledSubjects, fold: int) -> BoolArray:
    """(n,) mask of the subjects whose label the method may use in `fold`; none at a real site that is left out in it.

    Raises:
        UserError: there is none, and no other institution may have one.
    """
    training = inputs.training(fold)
    if not (training.any() or inputs.link.remote):
        raise UserError(
            f"Fold {fold}: expected training subjects with a diagnosis, found none; "
            "leave-one-site-out needs at least two sites, other splits at least two folds."
        )
    return training
