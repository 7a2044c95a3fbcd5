"""Confusion matrices: counts of true and predicted classes over all runs."""

import numpy as np
import pandas as pd
from sklearn.metrics import confusion_matrix

from brainfed.evaluation.predictions import class_names, predicted

CONFUSION_COLUMNS = ("variant", "label", "predicted", "predictions", "share")


def confusion_table(predictions: pd.DataFrame) -> pd.DataFrame:
    """Confusion matrix of every variant, one row a cell.

    Args:
        predictions: of all variants, repeats and folds.

    Returns:
        `CONFUSION_COLUMNS`: true and predicted class by name (by code if there are two), the number of predictions
        over all repeats, and their share of the true class (NaN for an empty class).
    """
    names = class_names(predictions)
    rows = []
    for variant, part in predictions.groupby("variant", sort=False):
        counts = confusion_matrix(part["label"].to_numpy(dtype=np.int64), predicted(part), labels=np.arange(len(names)))
        for true, row in enumerate(counts):
            for found, count in enumerate(row):
                share = count / row.sum() if row.sum() else np.nan
                rows.append((variant, names[true], names[found], int(count), share))
    return pd.DataFrame(rows, columns=list(CONFUSION_COLUMNS))
