"""The models of a variant in all repeats and folds: each a target of attacks, and a shadow model of the others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.evaluation.predictions import class_names, class_scores
from brainfed.runtime.errors import UserError

Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class ShadowRuns:
    """R repeats of F folds on n subjects, a model each.

    Attributes:
        scores: (R, F, n, C) of every subject that the model of a repeat and fold scored; NaN elsewhere.
        trained: (R, F, n) whether the subject trained the model.
        label: (R, n) class; it differs between repeats where labels are permuted. -1: no model of the repeat has it.
        group: (n,) number of the twin group: one person, or scans with one content.
        kind: of the scores, `probability` or `margin`.
    """

    scores: Float64
    trained: Mask
    label: IntArray
    group: IntArray
    kind: str

    @property
    def repeats(self) -> int:
        """R."""
        return len(self.scores)

    @property
    def scored(self) -> Mask:
        """(R, F, n) whether the model scored the subject."""
        return np.asarray(np.isfinite(self.scores).all(axis=-1))

    @property
    def held_out(self) -> Mask:
        """(R, F, n) whether the model scored the subject and never saw its label."""
        return self.scored & ~self.trained

    def of_label(self, values: Float64, repeat: int) -> Float64:
        """Of values (..., n, C) the entries (..., n) of the class that each subject has in a repeat."""
        label = np.maximum(self.label[repeat], 0)
        return np.asarray(values[..., np.arange(len(label)), label])


def shadow_runs(predictions: pd.DataFrame, members: pd.DataFrame, groups: Mapping[str, str]) -> ShadowRuns:
    """Join the scores of tested and of training subjects of one variant.

    Args:
        predictions: one row a repeat and tested subject: repeat, fold, subject, scores, kind, label.
        members: the same columns, one row a repeat, fold and subject that trained.
        groups: subject -> name of its twin group; one that is not there is alone.

    Raises:
        UserError: a subject trained in the fold that tests it.
    """
    both = predictions.merge(members, on=["repeat", "fold", "subject"])
    if len(both):
        found = both.iloc[0]
        raise UserError(
            f"Repeat {found['repeat']}, fold {found['fold']}: subject {found['subject']!r} is tested and is a training "
            "subject; delete the variant's folder and run again."
        )
    rows = pd.concat([predictions, members], ignore_index=True)
    subjects = sorted(rows["subject"].unique())
    place = {subject: position for position, subject in enumerate(subjects)}
    repeat, fold = (rows[name].to_numpy(np.int64) for name in ("repeat", "fold"))
    subject = rows["subject"].map(place).to_numpy(np.int64)
    size = int(repeat.max()) + 1, int(fold.max()) + 1, len(subjects)
    scores = np.full((*size, len(class_names(rows))), np.nan)
    scores[repeat, fold, subject] = class_scores(rows)
    trained = np.zeros(size, dtype=bool)
    trained[repeat, fold, subject] = np.arange(len(rows)) >= len(predictions)
    label = np.full((size[0], size[2]), -1, dtype=np.int64)
    label[repeat, subject] = rows["label"].to_numpy(np.int64)
    return ShadowRuns(scores, trained, label, _numbers(subjects, groups), str(rows["kind"].iloc[0]))


def _numbers(subjects: Sequence[str], groups: Mapping[str, str]) -> IntArray:
    """(n,) number of each subject's group."""
    names = [groups.get(subject, subject) for subject in subjects]
    return np.unique(names, return_inverse=True)[1].astype(np.int64)
