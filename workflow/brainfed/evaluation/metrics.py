"""Metrics of two classes: 1 patient, 0 control. Undefined values are NaN.

Metrics of more classes are in `evaluation.class_metrics`.
"""

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

METRICS = ("accuracy", "balanced_accuracy", "auc", "precision", "recall", "specificity", "f1")


def metrics(label: NDArray[np.int64], score: NDArray[np.float64], threshold: float) -> dict[str, float]:
    """All of `METRICS` for labels (n,) and scores (n,); a score above the threshold predicts a patient.

    An undefined metric is NaN: AUC and balanced accuracy with one class, precision without a
    predicted patient, recall without patients, F1 without patients and predicted patients,
    specificity without controls, every metric without subjects.
    """
    called = score > threshold
    patient = label == 1
    true_positive = int((called & patient).sum())
    false_positive = int((called & ~patient).sum())
    false_negative = int((~called & patient).sum())
    true_negative = int((~called & ~patient).sum())
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
    """Area under the ROC curve; NaN with one class."""
    return float(roc_auc_score(label, score)) if len(np.unique(label)) == 2 else np.nan


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else np.nan
