"""Words of the metrics."""

METRIC_TITLES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "auc": "AUC",
    "precision": "precision",
    "recall": "recall",
    "specificity": "specificity",
    "f1": "F1",
}
SHOWN_METRICS = ("auc", "accuracy")
"""Metrics of figures and tests."""
