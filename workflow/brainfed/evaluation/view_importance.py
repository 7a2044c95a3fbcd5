"""Importance of the views of a linear model: loss of AUC when a view is permuted (Breiman 2001, Machine Learning 45).

The margin of a linear model is a sum of parts, one a view. A view is permuted among the subjects of an institution that
one fold tests: they have one model, so permuted parts are the parts of permuted features. No model is trained again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from brainfed.runtime.artefacts import read_arrays, read_table
from brainfed.runtime.streams import Streams

COLUMNS = ("variant", "view", "auc", "permuted", "loss", "sd", "runs")
PERMUTATIONS = 20
"""Permutations of a view in every fold and institution."""

Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class ViewParts:
    """Parts of the views in the margins of the tested subjects of one repeat.

    Attributes:
        subjects: institution, fold and label of every tested subject.
        parts: (n, K, V) in the same order; one model of two classes, else one a class.
        views: V names.
    """

    subjects: pd.DataFrame
    parts: Float64
    views: tuple[str, ...]


def read_parts(patterns: str | Path, predictions: str | Path) -> ViewParts | None:
    """Parts beside the patterns of a repeat, and the subjects in its predictions; None without views."""
    described = read_arrays(patterns, []).metadata
    if "subjects" not in described:
        return None
    parts = read_arrays(patterns, ["contributions"]).arrays["contributions"].astype(np.float64)
    place = {subject: row for row, subject in enumerate(described["subjects"])}
    people = read_table(predictions, ["subject", "institution", "fold", "label"])
    rows = [place[subject] for subject in people["subject"]]
    return ViewParts(people, parts[rows], tuple(view["name"] for view in described["views"]))


def view_importance(variant: str, repeats: Sequence[ViewParts], seed: int) -> pd.DataFrame:
    """Loss of AUC of every view of a variant.

    Returns:
        `COLUMNS`, one row a view. Means over runs (repeat and fold) of the AUC, mean over institutions (of more than
        two classes also over the classes, each against the rest); of the same after permutation of the view; of their
        difference; its standard deviation over runs (NaN of one run); and the number of runs with an AUC.
    """
    runs = [
        _of_fold(found, int(fold), Streams(seed, repeat))
        for repeat, found in enumerate(repeats)
        for fold in np.unique(found.subjects["fold"])
    ]
    values = np.stack(runs)
    loss = values[:, :1] - values[:, 1:]
    finite = np.isfinite(loss).sum(axis=0)
    mean = _mean(loss)
    squares = np.where(np.isfinite(loss), (loss - mean) ** 2, 0.0).sum(axis=0)
    sd = np.where(finite > 1, np.sqrt(squares / np.maximum(finite - 1, 1)), np.nan)
    scores = _mean(values)
    columns = (variant, repeats[0].views, scores[0], scores[1:], mean, sd, finite)
    return pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))


def _of_fold(found: ViewParts, fold: int, streams: Streams) -> Float64:
    """(1 + V,) mean AUC over institutions: as it is, and with each view permuted; NaN without a defined AUC."""
    inside = (found.subjects["fold"] == fold).to_numpy()
    each = []
    for institution in sorted(set(found.subjects.loc[inside, "institution"])):
        rows = inside & (found.subjects["institution"] == institution).to_numpy()
        labels = found.subjects.loc[rows, "label"].to_numpy(dtype=np.int64)
        parts = found.parts[rows]
        margins = [parts.sum(axis=2)[None]]
        for place, view in enumerate(found.views):
            stream = streams.numpy("permuted view", view, fold, institution)
            orders = np.stack([stream.permutation(len(labels)) for _ in range(PERMUTATIONS)])
            margins.append(parts.sum(axis=2) - parts[:, :, place] + parts[orders, :, place])
        each.append([_mean_auc(labels, own) for own in margins])
    return np.asarray(_mean(np.array(each)))


def _mean_auc(labels: NDArray[np.int64], margins: Float64) -> float:
    """Mean AUC over draws and classes of margins (draws, n, K); NaN if no class has an AUC."""
    models = margins.shape[2]
    codes = [1] if models == 1 else range(models)
    found = [_auc(labels == code, margins[:, :, place]) for place, code in enumerate(codes)]
    return float(_mean(np.array(found)[:, None])[0])


def _auc(positive: NDArray[np.bool_], margins: Float64) -> float:
    """Mean over draws of the AUC of margins (draws, n), from ranks; NaN with one class."""
    count, others = int(positive.sum()), int((~positive).sum())
    if not count or not others:
        return np.nan
    ranks = rankdata(margins, axis=1)[:, positive].sum(axis=1)
    return float(np.mean((ranks - count * (count + 1) / 2) / (count * others)))


def _mean(values: Float64) -> Float64:
    """Means of the columns over the finite rows; NaN without any."""
    finite = np.isfinite(values)
    count = finite.sum(axis=0)
    return np.where(count > 0, np.where(finite, values, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)
