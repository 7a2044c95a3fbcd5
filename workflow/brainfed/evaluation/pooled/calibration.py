"""Calibration of probabilities: calibration curve and Brier score."""

import numpy as np
import pandas as pd
from sklearn.metrics import brier_score_loss
from statsmodels.stats.proportion import proportion_confint

CALIBRATION_COLUMNS = ("variant", "mean_score", "fraction_patients", "low", "high", "subjects")


def calibration_curve(predictions: pd.DataFrame, bins: int = 10, rows: int = 1) -> pd.DataFrame:
    """Predicted against observed share of patients, in bins of equal width over [0, 1].

    A subject is predicted once a repeat, so the interval counts a bin's predictions divided by the repeats (Wilson,
    95 %): repeats add no people.

    Args:
        predictions: variant, repeat, score, kind, label; all repeats and folds together. Margins are not
            probabilities and are left out.
        bins: number of bins; empty bins have no row.
        rows: rows that one prediction has, as of several classes against the rest: they count as one subject.

    Returns:
        `CALIBRATION_COLUMNS`: mean score and share of patients of each bin, bounds of the share, and the number of
        predictions a repeat.
    """
    scored = _probabilities(predictions)
    inner_edges = np.linspace(0, 1, bins + 1)[1:-1]
    scored = scored.assign(bin=np.searchsorted(inner_edges, scored["score"].to_numpy(), side="left"))
    grouped = scored.groupby(["variant", "bin"], sort=True)
    table = grouped.agg(
        mean_score=("score", "mean"), fraction_patients=("label", "mean"), subjects=("label", "size")
    ).reset_index()
    repeats = scored.groupby("variant")["repeat"].nunique()
    subjects = table["subjects"] / table["variant"].map(repeats) / rows
    low, high = proportion_confint(table["fraction_patients"] * subjects, subjects, method="wilson")
    rank = {name: index for index, name in enumerate(scored["variant"].unique())}
    table = table.assign(low=low, high=high, subjects=subjects, rank=table["variant"].map(rank))
    order = table.sort_values(["rank", "bin"]).index
    return table.loc[order, list(CALIBRATION_COLUMNS)].reset_index(drop=True)


def brier_scores(predictions: pd.DataFrame) -> pd.DataFrame:
    """Mean squared error of the probabilities of each variant: variant, brier (0.25 is chance level)."""
    rows = [
        (variant, float(brier_score_loss(part["label"].astype("int64"), part["score"], pos_label=1)))
        for variant, part in _probabilities(predictions).groupby("variant", sort=False)
    ]
    return pd.DataFrame(rows, columns=["variant", "brier"])


def _probabilities(predictions: pd.DataFrame) -> pd.DataFrame:
    return predictions.loc[predictions["kind"] == "probability"].astype({"label": "float64"})
