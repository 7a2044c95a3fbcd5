"""What a site says of its scores at the end: counts and measures of its test folds, of no single person."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from brainfed.evaluation.metrics import class_names, predicted, read_predictions
from brainfed.evaluation.scores import POOLED, score_runs

FEWEST_TESTED = 5
"""Tested subjects of a fold below which its row is not sent: a measure of so few would be theirs."""


def site_scores(runs: Sequence[tuple[str, int]], files: Sequence[str]) -> list[dict[str, Any]]:
    """A row a variant, repeat and fold: numbers of tested subjects by true and predicted class, and the measures.

    Args:
        runs: variant and repeat of each file.
        files: predictions of this site's subjects.
    """
    predictions = read_predictions(runs, files)
    names = class_names(predictions)
    predictions = predictions.assign(predicted=predicted(predictions))
    measures = score_runs(predictions.drop(columns="predicted"))
    rows = []
    for runs_of, part in predictions.groupby(["variant", "repeat", "fold"], sort=True):
        if len(part) < FEWEST_TESTED:
            continue
        variant, repeat, fold = runs_of
        counts = np.zeros((len(names), len(names)), dtype=np.int64)
        np.add.at(counts, (part["label"].to_numpy(), part["predicted"].to_numpy()), 1)
        same = (measures[["variant", "repeat", "fold"]] == [variant, repeat, fold]).all(axis=1)
        own = measures[same & (measures["scope"] == POOLED)]
        values = own["value"].to_numpy(dtype=np.float64).tolist()
        rows.append(
            {
                "variant": str(variant),
                "repeat": int(str(repeat)),
                "fold": int(str(fold)),
                "subjects": len(part),
                "counts": counts.tolist(),
                "measures": {
                    str(metric): value if np.isfinite(value) else None
                    for metric, value in zip(own["metric"], values, strict=True)
                },
            }
        )
    return rows
