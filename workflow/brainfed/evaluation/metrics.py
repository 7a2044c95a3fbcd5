"""Metrics of two classes: 1 patient, 0 control. Undefined values are NaN.

Metrics of more classes are in `evaluation.class_metrics`.
"""

import numpy as np
from numpy.typing import NDArray

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
    """Area under the ROC curve: the share of pairs of a patient and a control in which the patient's score is higher.

    A tie counts half (Hanley & McNeil 1982, Radiology 143, Sec. II); NaN with one class.

    Args:
        label: (n,) 1 patient, 0 control.
        score: (n,) finite.
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
