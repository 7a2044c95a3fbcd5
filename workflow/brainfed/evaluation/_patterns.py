"""Patterns of linear models: their stability over runs, the strongest features, the importance of views."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from brainfed.runtime import BoolArray, Float64, IntArray, Streams, UserError, read_arrays, read_json, read_table

# Stability over runs of the patterns of linear models, and their agreement with planted connections.
#
# A pattern is the change of every feature along with a model's score (Haufe et al. 2014, NeuroImage 87); every run
# (repeat and fold) has its own, from its training subjects. Runs share most of these subjects: z and the share of equal
# signs describe the stability of the pattern and test nothing.

Connection = tuple[str, str]
Places = Mapping[str, Float64]
"""Region -> (3,) centre in mm, NaN without one; empty if no region has a place."""

STABILITY_COLUMNS = ("view", "from", "to", "mean", "sd", "z", "same_sign", "runs", "rank")


@dataclass(frozen=True)
class Patterns:
    """Patterns of one variant.

    Attributes:
        values: (runs, K, d) in the order of repeats and folds; NaN for a feature that the run did not select.
        features: (d, 3) of each feature its view (empty without views) and the regions that it connects; a tangent
            feature may connect a region with itself, and a measure has its name in place of both regions.
        classes: names of the K classes, each against the rest; empty for two classes, whose pattern is that of class 1.
    """

    values: Float64
    features: NDArray[np.str_]
    classes: tuple[str, ...]


def read_patterns(files: Sequence[Path | str]) -> Patterns | None:
    """The patterns of all repeats of one variant; None for a method that leaves none.

    Raises:
        UserError: the files have different features.
    """
    read = [read_arrays(path, ["patterns"]) for path in files]
    if not read[0].arrays["patterns"].size:
        return None
    views, classes = read[0].metadata["views"], read[0].metadata["classes"]
    for path, file in zip(files, read, strict=True):
        if (file.metadata.get("views"), file.metadata.get("classes")) != (views, classes):
            raise UserError(f"{path}: expected patterns of the features of {files[0]}; delete both and run again.")
    features = [_features(view) for view in views]
    runs = [
        _whole(pattern, views, columns, [len(own) for own in features])
        for file in read
        for pattern, columns in zip(file.arrays["patterns"], file.metadata["columns"], strict=True)
    ]
    return Patterns(np.stack(runs), np.concatenate(features), tuple(classes))


def _features(view: Mapping[str, Any]) -> NDArray[np.str_]:
    """(d, 3) view and regions of all features of a view, also of those that no fold selects."""
    regions, settings = np.asarray(view["regions"], dtype=np.str_), view["settings"]
    if settings["kind"] != "connectivity":
        first = second = np.arange(len(regions))
    else:
        first, second = np.triu_indices(len(regions), 0 if settings["connectivity"] == "tangent" else 1)
    return np.column_stack([np.full(len(first), view["name"]), regions[first], regions[second]])


def _whole(
    pattern: NDArray[np.floating],
    views: Sequence[Mapping[str, Any]],
    columns: Sequence[Sequence[int] | None],
    widths: Sequence[int],
) -> Float64:
    """Pattern (K, all features) of one run from that (K, d) of the features that it has, NaN elsewhere."""
    blocks = []
    for view, chosen, width in zip(views, columns, widths, strict=True):
        whole = np.full((len(pattern), width), np.nan)
        whole[:, slice(None) if chosen is None else list(chosen)] = pattern[:, view["start"] : view["stop"]]
        blocks.append(whole)
    return np.concatenate(blocks, axis=1)


def stability(patterns: Patterns, model: int = 0) -> pd.DataFrame:
    """How stable the pattern of every feature is over the runs that have it, of one of the K models.

    Returns:
        `STABILITY_COLUMNS`, in the order of the features. Over the runs: mean; sd (NaN of one run); z = mean / sd
        (infinite without spread, 0 where both are 0); same_sign, the share of runs with the sign of the mean (0 for a
        mean of 0); runs, their number. Rank 1 has the largest absolute mean, for which a run without the feature counts
        as 0; equal means rank in the order of the features.
    """
    values = patterns.values[:, model]
    selected = np.isfinite(values)
    mean, sd, runs = _moments(values)
    mean = np.where(runs > 0, mean, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where((sd == 0) & (mean == 0), 0.0, mean / sd)
    same = ((np.sign(values) == np.sign(mean)) & selected & (mean != 0)).sum(axis=0) / np.maximum(runs, 1)
    rank = np.empty(len(mean), dtype=np.int64)
    sizes = np.abs(np.where(selected, values, 0.0).mean(axis=0))
    rank[np.argsort(-sizes, kind="stable")] = np.arange(1, len(mean) + 1)
    columns = (*patterns.features.T, mean, sd, z, same, runs, rank)
    return pd.DataFrame(dict(zip(STABILITY_COLUMNS, columns, strict=True)))


def planted_connections(truth: Path | str, phenotype: str = "diagnosis") -> dict[Connection, int]:
    """Connections that a phenotype moves in a simulated cohort, regions in order of name -> sign of the change.

    The sign, as `truth.json` has it, is that of patients, of higher `age`, of males for `sex`.
    """
    moved = read_json(truth)["connections"][phenotype]
    return {_unordered(first, second): int(sign) for first, second, sign in moved}


def precision_at(table: pd.DataFrame, planted: Mapping[Connection, int], counts: Sequence[int]) -> pd.DataFrame:
    """Share of planted connections among the k first in rank in a table of `stability`, of one view.

    Regions with themselves do not count; values of k above the number of connections are left out.

    Returns:
        k; precision; with_sign, the share that is planted and has the planted sign; chance, the precision of a random
        order.

    Raises:
        ValueError: a planted connection is not in the table.
    """
    kept = table[table["from"] != table["to"]].sort_values("rank")
    ranked = [_unordered(first, second) for first, second in zip(kept["from"], kept["to"], strict=True)]
    absent = sorted(set(planted) - set(ranked))
    if absent:
        raise ValueError(f"the planted connection {absent[0]} is not among the {len(ranked)} connections")
    sign = np.array([planted.get(connection, 0) for connection in ranked])
    hits = (sign != 0).cumsum()
    right = ((sign != 0) & (sign == np.sign(kept["mean"].to_numpy()))).cumsum()
    k = np.array([count for count in counts if 0 < count <= len(ranked)], dtype=np.int64)
    chance = len(planted) / len(ranked)
    return pd.DataFrame({"k": k, "precision": hits[k - 1] / k, "with_sign": right[k - 1] / k, "chance": chance})


def _unordered(first: str, second: str) -> Connection:
    return (first, second) if first <= second else (second, first)


# Tables of the strongest features in the patterns of linear models.

AXES = ("x", "y", "z")
STRONGEST_COLUMNS = (
    "variant", "class", "view", "rank", "from", "to", *(f"from_{axis}" for axis in AXES),
    *(f"to_{axis}" for axis in AXES), "mean", "sd", "z", "same_sign", "runs", "among_strongest", "k", "features",
)  # fmt: skip
PLANTED_COLUMNS = ("variant", "view", "k", "precision", "with_sign", "chance", "planted", "connections")

KEPT = 1000
"""Largest number of features of a pattern and view in the table."""
SHARE, FEWEST = 0.01, 20
"""The strongest features of a run: this share of a view, and their smallest number."""


def strongest_table(variant: str, patterns: Patterns, places: Places) -> pd.DataFrame:
    """The `KEPT` strongest features of every class and view of a variant.

    Returns:
        `STRONGEST_COLUMNS`, in the order of classes, views and ranks. Class: empty for two classes. Rank: of
        `stability`, within the view. Coordinates in mm: NaN for a region without a place. among_strongest: share of all
        runs in which the feature is among the k strongest of the view's features.
    """
    tables = [
        _strongest_of(view, model, places).assign(variant=variant, **{"class": name})
        for model, name in enumerate(patterns.classes or ("",))
        for view in _by_view(patterns).values()
    ]
    return pd.concat(tables, ignore_index=True)[list(STRONGEST_COLUMNS)]


def planted_table(variant: str, patterns: Patterns, planted: Mapping[Connection, int]) -> pd.DataFrame:
    """Precision of the k strongest connections of every view against the planted ones, of patterns of two classes.

    Returns:
        `PLANTED_COLUMNS`: those of `precision_at`, number of planted and of all connections; for k of 10, 20, 50, 100
        and the number of planted connections.
    """
    counts = sorted({10, 20, 50, 100, len(planted)})
    tables = []
    for name, view in _by_view(patterns).items():
        table = stability(view)
        connections = int((table["from"] != table["to"]).sum())
        if connections and planted:
            scored = precision_at(table, planted, counts)
            tables.append(scored.assign(variant=variant, view=name, planted=len(planted), connections=connections))
    return pd.concat(tables, ignore_index=True)[list(PLANTED_COLUMNS)] if tables else no_rows(PLANTED_COLUMNS)


def no_rows(columns: Sequence[str]) -> pd.DataFrame:
    """An empty table."""
    return pd.DataFrame({name: [] for name in columns})


def _by_view(patterns: Patterns) -> dict[str, Patterns]:
    """View -> the patterns of its features alone."""
    views = patterns.features[:, 0]
    masks = {view: views == view for view in dict.fromkeys(views.tolist())}
    return {
        view: replace(patterns, values=patterns.values[:, :, own], features=patterns.features[own])
        for view, own in masks.items()
    }


def _strongest_of(view: Patterns, model: int, places: Places) -> pd.DataFrame:
    width = len(view.features)
    k = min(max(FEWEST, round(SHARE * width)), width)
    table = stability(view, model).assign(among_strongest=_among(view.values[:, model], k), k=k, features=width)
    table = table.sort_values("rank").head(KEPT).reset_index(drop=True)
    nowhere = np.full(3, np.nan)
    for end in ("from", "to"):
        centres = np.array([places.get(region, nowhere) for region in table[end]]).reshape(-1, 3)
        table = table.assign(**{f"{end}_{axis}": centres[:, place] for place, axis in enumerate(AXES)})
    return table


def _among(values: Float64, k: int) -> Float64:
    """(d,) share of the runs (runs, d) in which a feature is among the k of largest absolute value.

    A feature that a run does not select, or that does not change, is not among them.
    """
    size = np.nan_to_num(np.abs(values), nan=0.0)
    order = np.argsort(-size, axis=1, kind="stable")[:, :k]
    among = np.zeros(values.shape, dtype=np.bool_)
    np.put_along_axis(among, order, True, axis=1)
    return np.asarray((among & (size > 0)).mean(axis=0))


# Importance of the views of a linear model: loss of AUC when a view is permuted (Breiman 2001, Machine Learning 45).
#
# The margin of a linear model is a sum of parts, one a view. A view is permuted among the subjects of an institution
# that one fold tests: they have one model, so permuted parts are the parts of permuted features. No model is trained
# again.

IMPORTANCE_COLUMNS = ("variant", "view", "auc", "permuted", "loss", "sd", "runs")
PERMUTATIONS = 20
"""Permutations of a view in every fold and institution."""


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
    if "subjects" not in read_arrays(patterns, []).metadata:
        return None
    file = read_arrays(patterns, ["contributions"])
    place = {subject: row for row, subject in enumerate(file.subjects)}
    people = read_table(predictions, ["subject", "institution", "fold", "label"])
    parts = file.arrays["contributions"].astype(np.float64)[[place[subject] for subject in people["subject"]]]
    return ViewParts(people, parts, tuple(view["name"] for view in file.metadata["views"]))


def view_importance(variant: str, repeats: Sequence[ViewParts], seed: int) -> pd.DataFrame:
    """Loss of AUC of every view of a variant.

    Returns:
        `IMPORTANCE_COLUMNS`, one row a view. Means over runs (repeat and fold) of the AUC, mean over institutions (of
        more than two classes also over the classes, each against the rest); of the same after permutation of the view;
        of their difference; its standard deviation over runs (NaN of one run); and the number of runs with an AUC.
    """
    values = np.stack(
        [
            _of_fold(parts, int(fold), Streams(seed, repeat))
            for repeat, parts in enumerate(repeats)
            for fold in np.unique(parts.subjects["fold"])
        ]
    )
    loss, sd, runs = _moments(values[:, :1] - values[:, 1:])
    scores = _mean(values)
    columns = (variant, repeats[0].views, scores[0], scores[1:], loss, sd, runs)
    return pd.DataFrame(dict(zip(IMPORTANCE_COLUMNS, columns, strict=True)))


def _of_fold(repeat: ViewParts, fold: int, streams: Streams) -> Float64:
    """(1 + V,) mean AUC over institutions: as it is, and with each view permuted; NaN without a defined AUC."""
    inside = (repeat.subjects["fold"] == fold).to_numpy()
    each = []
    for institution in sorted(set(repeat.subjects.loc[inside, "institution"])):
        rows = inside & (repeat.subjects["institution"] == institution).to_numpy()
        labels = repeat.subjects.loc[rows, "label"].to_numpy(dtype=np.int64)
        parts = repeat.parts[rows]
        margins = [parts.sum(axis=2)[None]]
        for place, view in enumerate(repeat.views):
            stream = streams.numpy("permuted view", view, fold, institution)
            orders = np.stack([stream.permutation(len(labels)) for _ in range(PERMUTATIONS)])
            margins.append(parts.sum(axis=2) - parts[:, :, place] + parts[orders, :, place])
        each.append([_mean_auc(labels, own) for own in margins])
    return np.asarray(_mean(np.array(each)))


def _mean_auc(labels: IntArray, margins: Float64) -> float:
    """Mean AUC over draws and classes of margins (draws, n, K); NaN if no class has an AUC."""
    models = margins.shape[2]
    codes = [1] if models == 1 else range(models)
    single = [_auc(labels == code, margins[:, :, place]) for place, code in enumerate(codes)]
    return float(_mean(np.array(single)[:, None])[0])


def _auc(positive: BoolArray, margins: Float64) -> float:
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


def _moments(values: Float64) -> tuple[Float64, Float64, NDArray[np.intp]]:
    """Means of the columns over the finite rows (NaN without any), their sd (NaN of one row), numbers of these rows."""
    finite, mean = np.isfinite(values), _mean(values)
    count = finite.sum(axis=0)
    squares = np.where(finite, (values - mean) ** 2, 0.0).sum(axis=0)
    return mean, np.where(count > 1, np.sqrt(squares / np.maximum(count - 1, 1)), np.nan), count
