"""Predictions of a run as scores and classes, and the metrics of two classes."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.runtime import COMPLEMENT, SCORE, SCORE_OF, UserError, predicted_classes, read_table

# Tables of predictions: from columns to scores (n, C) and predicted classes, for any number of classes.

KEYS = ("subject", "institution", "fold", "kind", "label")
"""Columns of every table besides the scores."""


def read_predictions(
    runs: Sequence[tuple[str, int]], files: Sequence[str], further: Sequence[str] = ()
) -> pd.DataFrame:
    """The predictions of (variant, repeat) `runs`, in one table; files have `further` columns beside `KEYS` and scores.

    Raises:
        UserError: a file lacks a column, or has the scores of other classes than the first.
    """
    parts: list[pd.DataFrame] = []
    for (variant, repeat), path in zip(runs, files, strict=True):
        parts.append(read_table(path, [*KEYS, *further]).assign(variant=variant, repeat=repeat))
        columns, first = score_columns_of(parts[-1]), score_columns_of(parts[0])
        if not columns or columns != first:
            raise UserError(
                f"{path}: expected the scores {first or [SCORE]} of {files[0]}, found {columns}; delete the file and "
                "run again."
            )
    return pd.concat(parts, ignore_index=True)


def score_columns_of(predictions: pd.DataFrame) -> list[str]:
    """The columns with scores: `score` alone, or one `score-NAME` a class in the order of the codes."""
    if SCORE in predictions:
        return [SCORE]
    return [str(name) for name in predictions.columns if str(name).startswith(SCORE_OF)]


def class_names(predictions: pd.DataFrame) -> tuple[str, ...]:
    """Name of every class in the order of the codes; the codes if there are two classes, which have one column."""
    columns = score_columns_of(predictions)
    return ("0", "1") if columns == [SCORE] else tuple(name.removeprefix(SCORE_OF) for name in columns)


def class_scores(predictions: pd.DataFrame) -> NDArray[np.float64]:
    """Scores (n, C); of two classes both follow from the score of class 1."""
    columns = score_columns_of(predictions)
    scores = predictions[columns].to_numpy(dtype=np.float64)
    if columns != [SCORE]:
        return np.asarray(scores)
    total = predictions["kind"].map(COMPLEMENT).to_numpy(dtype=np.float64)
    return np.column_stack([total - scores[:, 0], scores[:, 0]])


def predicted(predictions: pd.DataFrame) -> NDArray[np.int64]:
    """The predicted class (n,) of every row."""
    scores, kinds = class_scores(predictions), predictions["kind"].to_numpy(dtype=object)
    classes = np.zeros(len(scores), dtype=np.int64)
    for kind in set(kinds):
        classes[kinds == kind] = predicted_classes(scores[kinds == kind], kind)
    return classes


def against_rest(predictions: pd.DataFrame, code: int) -> pd.DataFrame:
    """The same rows as a two-class problem: `label` 1 for the class `code`, `score` its score."""
    scores = class_scores(predictions)[:, code]
    label = (predictions["label"].to_numpy() == code).astype(np.int8)
    return predictions.drop(columns=score_columns_of(predictions)).assign(score=scores, label=label)


# Metrics of two classes: 1 patient, 0 control. Those of more are in `evaluation._scores`.

METRICS = ("accuracy", "balanced_accuracy", "auc", "precision", "recall", "specificity", "f1")


def metrics(label: NDArray[np.int64], score: NDArray[np.float64], threshold: float) -> dict[str, float]:
    """All of `METRICS` for labels (n,) and scores (n,); a score above the threshold predicts a patient.

    An undefined metric is NaN: AUC and balanced accuracy with one class, precision without a predicted patient, recall
    without patients, F1 without patients and predicted patients, specificity without controls, all without subjects.
    """
    called, patient = score > threshold, label == 1
    true_positive, false_positive = int((called & patient).sum()), int((called & ~patient).sum())
    false_negative, true_negative = int((~called & patient).sum()), int((~called & ~patient).sum())
    recall = _ratio(true_positive, true_positive + false_negative)
    specificity = _ratio(true_negative, true_negative + false_positive)
    return {
        "accuracy": _ratio(true_positive + true_negative, len(label)),
        "balanced_accuracy": (recall + specificity) / 2,
        "auc": auc(label, score),
        "precision": _ratio(true_positive, true_positive + false_positive),
        "recall": recall,
        "specificity": specificity,
        "f1": _ratio(2 * true_positive, 2 * true_positive + false_positive + false_negative),
    }


def auc(label: NDArray[np.int64], score: NDArray[np.float64]) -> float:
    """Area under the ROC curve: the share of pairs of a patient and a control in which the patient's score is higher.

    Labels (n,) are 1 for patients and 0 for controls, scores (n,) finite. A tie counts half (Hanley & McNeil 1982,
    Radiology 143, Sec. II); NaN with one class.
    """
    patients, controls = score[label == 1], np.sort(score[label != 1])
    pairs = len(patients) * len(controls)
    below, up_to = (int(np.searchsorted(controls, patients, side).sum()) for side in ("left", "right"))
    return _ratio(below + up_to, 2 * pairs)


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else np.nan


def sd_of_chance(controls: int, patients: int) -> float:
    """Standard deviation of the AUC of scores that know nothing (Mann and Whitney 1947)."""
    return float(np.sqrt((controls + patients + 1) / (12 * controls * patients)))
