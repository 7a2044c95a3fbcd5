"""Metrics of more than two classes: means over the classes, each against the rest.

The AUC is the unweighted mean over classes of the AUC of one class against all others ("class reference" curves:
Fawcett 2006, Pattern Recognition Letters 27, Sec. 9; macro average in scikit-learn). It accepts margins and
probabilities.
"""

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support

from brainfed.evaluation.metrics import METRICS, auc, class_names, class_scores, metrics, predicted, score_columns_of
from brainfed.runtime.score_kinds import SCORE, THRESHOLD

OF_ONE_CLASS = ("auc", "precision", "recall", "specificity", "f1")
"""Metrics with a value for every class; the value of all classes is their mean."""


def metrics_of(predictions: pd.DataFrame, classes: Collection[int] | None = None) -> dict[str, float]:
    """The metrics of a table of predictions, of two classes or of more; `classes` is as in `class_metrics`."""
    label = predictions["label"].to_numpy(dtype=np.int64)
    if score_columns_of(predictions) != [SCORE]:
        return class_metrics(
            label, class_scores(predictions), predicted(predictions), class_names(predictions), classes
        )
    threshold = THRESHOLD[str(predictions["kind"].iloc[0])]
    return metrics(label, predictions[SCORE].to_numpy(dtype=np.float64), threshold)


def class_metrics(
    label: NDArray[np.int64],
    scores: NDArray[np.float64],
    predicted: NDArray[np.int64],
    names: Sequence[str],
    classes: Collection[int] | None = None,
) -> dict[str, float]:
    """All of `METRICS`, and after them `METRIC:NAME` of every class for those of `OF_ONE_CLASS`.

    An undefined value of one class is NaN: recall and AUC without a subject of the class, AUC and specificity without
    another subject, precision without a prediction of the class, F1 without a subject and a prediction of the class.
    A mean is NaN if a class has no value: a mean over other classes is another measure. Where a class cannot occur, as
    in a data set without it, `classes` leaves it out of the means; a prediction of it stays an error.

    Args:
        label: (n,) in {0, ..., C - 1}.
        scores: (n, C).
        predicted: (n,) the predicted class.
        classes: codes of the classes that the means are over; None: all.
    """
    codes = np.arange(len(names))
    counted = codes if classes is None else np.array(sorted(classes))
    single = _single(label, scores, predicted, codes)
    means = {metric: float(np.mean(values[counted])) for metric, values in single.items()}
    accuracy = float(accuracy_score(label, predicted)) if len(label) else np.nan
    means |= {"accuracy": accuracy, "balanced_accuracy": means["recall"]}
    by_class = {
        f"{metric}:{name}": float(single[metric][code]) for code, name in enumerate(names) for metric in OF_ONE_CLASS
    }
    return {metric: means[metric] for metric in METRICS} | by_class


def _single(
    label: NDArray[np.int64], scores: NDArray[np.float64], predicted: NDArray[np.int64], codes: NDArray[np.int64]
) -> dict[str, NDArray[np.float64]]:
    """Metric -> (C,) its value of every class against the rest."""
    if not len(label):
        return {metric: np.full(len(codes), np.nan) for metric in OF_ONE_CLASS}
    precision, recall, f1, _ = precision_recall_fscore_support(
        label, predicted, labels=codes, zero_division=np.nan, average=None
    )
    counts = confusion_matrix(label, predicted, labels=codes)
    others = len(label) - counts.sum(axis=1)
    called = counts.sum(axis=0) - np.diagonal(counts)
    specificity = np.divide(others - called, others, out=np.full(len(codes), np.nan), where=others > 0)
    return {
        "auc": np.array([auc((label == code).astype(np.int64), scores[:, code]) for code in codes]),
        "precision": precision,
        "recall": recall,
        "specificity": specificity,
        "f1": f1,
    }


# Confusion matrices: counts of true and predicted classes over all runs.

CONFUSION_COLUMNS = ("variant", "label", "predicted", "predictions", "share")


def confusion_table(predictions: pd.DataFrame) -> pd.DataFrame:
    """Confusion matrix of every variant, one row a cell.

    Returns:
        `CONFUSION_COLUMNS`: true and predicted class by name (by code if there are two), the number of predictions
        over all repeats, and their share of the true class (NaN for an empty class).
    """
    names = class_names(predictions)
    rows = []
    for variant, part in predictions.groupby("variant", sort=False):
        counts = confusion_matrix(part["label"].to_numpy(dtype=np.int64), predicted(part), labels=np.arange(len(names)))
        for true, row in zip(names, counts, strict=True):
            for called, count in zip(names, row, strict=True):
                share = count / row.sum() if row.sum() else np.nan
                rows.append((variant, true, called, int(count), share))
    return pd.DataFrame(rows, columns=list(CONFUSION_COLUMNS))
