"""The results table of predictions: one value a run, then its mean and spread over runs.

A run is one fold of one repeat, under `holdout` its only one. Scopes (FedNI Sec. IV-A scores institutions, then takes
the mean): `institution:NAME` scores one institution's test subjects, `institution` is the mean over the
institutions of a run, `pooled` scores all test subjects of the run together. Of more than two classes one institution
is scored over those that its tested subjects of the repeat have, in all folds together, if these are two or more: a
data set may lack a class. A class that the repeat has and a fold lacks is undefined in that fold.
"""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support

from brainfed.evaluation._metrics import METRICS, auc, class_names, class_scores, metrics, predicted, score_columns_of
from brainfed.runtime import SCORE, THRESHOLD, BoolArray, Float64, IntArray, UserError, read_table, write_tsv

# Metrics of more than two classes: means over the classes, each against the rest.
#
# The AUC is the unweighted mean over classes of the AUC of one class against all others ("class reference" curves:
# Fawcett 2006, Pattern Recognition Letters 27, Sec. 9; macro average in scikit-learn). It accepts margins and
# probabilities.

OF_ONE_CLASS = ("auc", "precision", "recall", "specificity", "f1")
"""Metrics with a value for every class; the value of all classes is their mean."""


def metrics_of(predictions: pd.DataFrame, classes: Collection[int] | None = None) -> dict[str, float]:
    """The metrics of a table of predictions, of two classes or of more; `classes` is as in `class_metrics`."""
    label = predictions["label"].to_numpy(dtype=np.int64)
    if score_columns_of(predictions) == [SCORE]:
        threshold = THRESHOLD[str(predictions["kind"].iloc[0])]
        return metrics(label, predictions[SCORE].to_numpy(dtype=np.float64), threshold)
    return class_metrics(label, class_scores(predictions), predicted(predictions), class_names(predictions), classes)


def class_metrics(
    label: IntArray, scores: Float64, predicted: IntArray, names: Sequence[str], classes: Collection[int] | None = None
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


def _single(label: IntArray, scores: Float64, predicted: IntArray, codes: IntArray) -> dict[str, Float64]:
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


# The results table.

PREDICTION_COLUMNS = ("variant", "repeat", "subject", "institution", "fold", "score", "kind", "label")
"""Columns for two classes; for more, one `score-NAME` a class replaces `score`."""
RUN_COLUMNS = ("variant", "repeat", "fold", "scope", "metric", "value")
GAIN_COLUMNS = ("variant", "against", "twin", "institution", "metric", "mean", "sd", "runs")
INSTITUTION = "institution"
POOLED = "pooled"
ALONE = f"{INSTITUTION}:"
"""Beginning of the scope of one institution alone, before its name."""


def score_runs(predictions: pd.DataFrame) -> pd.DataFrame:
    """Score every run in every scope, from `PREDICTION_COLUMNS`, one row a variant, repeat and tested subject.

    Returns:
        `RUN_COLUMNS`; variants in order of appearance, then by repeat, fold, scope and metric.

    Raises:
        UserError: a score is not finite, or a subject is scored twice in a repeat.
    """
    _check(predictions)
    known = _classes_of_institutions(predictions)
    rows = [
        (variant, repeat, fold, scope, metric, value)
        for (variant, repeat, fold), run in predictions.groupby(["variant", "repeat", "fold"], sort=False)
        for scope, values in _scopes(run, known[repeat])
        for metric, value in values.items()
    ]
    runs = pd.DataFrame(rows, columns=list(RUN_COLUMNS)).astype({"value": "float64"})
    rank = {name: index for index, name in enumerate(predictions["variant"].unique())}
    order = runs.assign(variant=runs["variant"].map(rank)).sort_values(["variant", "repeat", "fold"], kind="stable")
    return runs.loc[order.index].reset_index(drop=True)


def _check(predictions: pd.DataFrame) -> None:
    columns = score_columns_of(predictions)
    finite = np.isfinite(predictions[columns].to_numpy(dtype=np.float64))
    broken = predictions.loc[~finite.all(axis=1)]
    if len(broken):
        first = broken.iloc[0]
        score = next(first[column] for column in columns if not np.isfinite(first[column]))
        raise UserError(
            f"scores: {first['variant']} gave {score} for subject {first['subject']} (repeat "
            f"{first['repeat']}, fold {first['fold']}; {len(broken)} such rows), expected finite scores; its training "
            "diverged: lower its learning rate or noise."
        )
    twice = predictions.loc[predictions.duplicated(["variant", "repeat", "subject"])]
    if len(twice):
        first = twice.iloc[0]
        raise UserError(
            f"scores: {first['variant']} scores subject {first['subject']} twice in repeat {first['repeat']}, expected "
            "one fold to test it; delete the predictions of this variant and run again."
        )


def _classes_of_institutions(predictions: pd.DataFrame) -> dict[Hashable, dict[str, frozenset[int] | None]]:
    """Repeat -> institution -> classes of its tested subjects in all folds; None for fewer than two classes."""
    known: dict[Hashable, dict[str, frozenset[int] | None]] = {}
    for (repeat, institution), label in predictions.groupby(["repeat", "institution"])["label"]:
        classes = frozenset(int(code) for code in label.unique())
        known.setdefault(repeat, {})[str(institution)] = classes if len(classes) > 1 else None
    return known


def _scopes(run: pd.DataFrame, known: Mapping[str, frozenset[int] | None]) -> Iterator[tuple[str, dict[str, float]]]:
    """Pooled, the mean over institutions, then each institution in order of its name."""
    pooled = metrics_of(run)
    yield POOLED, pooled
    single = {str(name): metrics_of(part, known[str(name)]) for name, part in run.groupby("institution", sort=True)}
    yield INSTITUTION, {name: _mean([values[name] for values in single.values()]) for name in pooled}
    for institution, values in single.items():
        yield ALONE + institution, values


def _mean(values: list[float]) -> float:
    """Mean of the defined values; NaN if there is none."""
    defined = [value for value in values if np.isfinite(value)]
    return float(np.mean(defined)) if defined else np.nan


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean and spread over runs.

    Returns:
        variant, scope, metric, mean, sd (over runs), sd_of_repeats (over the means of the repeats, a reading of FedNI's
        Table V), runs (defined values), undefined (undefined values; in scope `institution` the values of single
        institutions, which its means leave out). The standard deviations divide by the count minus one and are NaN for
        a single value.
    """
    keys = ["variant", "scope", "metric"]
    values = runs.groupby(keys, sort=False)["value"]
    repeats = runs.groupby([*keys, "repeat"], sort=False)["value"].mean().groupby(keys, sort=False)
    table = pd.DataFrame(
        {
            "mean": values.mean(),
            "sd": values.std(ddof=1),
            "sd_of_repeats": repeats.std(ddof=1),
            "runs": values.count(),
            "undefined": values.size() - values.count(),
        }
    ).reset_index()
    inside = _of_institutions(table).groupby(["variant", "metric"])["undefined"].sum()
    owner = pd.MultiIndex.from_frame(table[["variant", "metric"]])
    undefined = table["undefined"].mask(table["scope"] == INSTITUTION, inside.reindex(owner).to_numpy())
    return table.assign(undefined=undefined)


def _of_institutions(runs: pd.DataFrame) -> pd.DataFrame:
    """The values of single institutions, with their names as `institution`."""
    single = runs.loc[runs["scope"].str.startswith(ALONE)]
    return single.assign(institution=single["scope"].str.removeprefix(ALONE))


def institutions_unseen(runs: pd.DataFrame) -> bool:
    """Whether every institution is tested in one fold alone and no fold tests two: leave-one-site-out."""
    tested = _of_institutions(runs)[["repeat", "fold", "scope"]].drop_duplicates()
    folds_of_one = tested.groupby(["repeat", "scope"])["fold"].size()
    ones_of_fold = tested.groupby(["repeat", "fold"])["scope"].size()
    return tested["fold"].nunique() > 1 and bool((folds_of_one == 1).all() and (ones_of_fold == 1).all())


def gain_over_counterparts(runs: pd.DataFrame, counterparts: Mapping[str, Mapping[str, str]]) -> pd.DataFrame:
    """Gain of each institution from a federated model over the same model alone and on pooled data, paired by run.

    `counterparts` is federated variant -> side (`alone`, `pooled`) -> its counterpart.

    Returns:
        `GAIN_COLUMNS`: mean and sd of the paired differences (variant minus counterpart), runs (number with both
        defined); empty without counterparts.

    Raises:
        UserError: a variant or a counterpart has no run.
    """
    single = _of_institutions(runs)
    pairing = ["repeat", "fold", "institution", "metric"]
    parts = []
    for variant, sides in counterparts.items():
        for side, counterpart in sides.items():
            own, others = (_of(single, name)[[*pairing, "value"]] for name in (variant, counterpart))
            paired = own.merge(others, on=pairing, suffixes=("", "_counterpart"), validate="one_to_one")
            paired = paired.assign(gain=paired["value"] - paired["value_counterpart"])
            gain = paired.groupby(["institution", "metric"], sort=False)["gain"]
            table = pd.DataFrame({"mean": gain.mean(), "sd": gain.std(ddof=1), "runs": gain.count()}).reset_index()
            parts.append(table.assign(variant=variant, against=side, twin=counterpart))
    return pd.concat(parts, ignore_index=True)[list(GAIN_COLUMNS)] if parts else pd.DataFrame(columns=GAIN_COLUMNS)


def _of(single: pd.DataFrame, variant: str) -> pd.DataFrame:
    own = single.loc[single["variant"] == variant]
    if own.empty:
        raise UserError(
            f"gain: the variant {variant} has no runs, found {sorted(set(single['variant']))}; add it to the "
            "experiment."
        )
    return own


# Two scorings of clustered federations, institution by institution (Xie et al. 2021, Tables 3 and 4).
#
# `last model` is the test accuracy of the last round. `paper scoring` is what the authors' code does with GCFL and
# GCFL+: it keeps the model of a cluster when the cluster is cut, with the accuracies of the round before, and all
# models of the last round; an institution has the best test accuracy of the models that it was kept in. The choice
# reads the test data, so the last model alone is ranked. Without clusters both are one.

LAST, PAPER_SCORING = "last model", "paper scoring"
COLUMNS = (
    "variant", "scoring", "accuracy", "sd", "institution_sd", "runs", "twin", "min_gain", "improved", "equal",
    "institutions",
)  # fmt: skip
EXACT = 12
"""Decimals of a gain that do not depend on the order of a sum."""
HISTORY = ("fold", "institution", "round", "test_accuracy")
RUN = ["repeat", "fold"]
ONE = [*RUN, "institution"]


def score_institutions(
    runs: str, histories: Mapping[str, Sequence[str]], counterparts: Mapping[str, str], output: str
) -> None:
    """Write `institution_table`, from the histories of all repeats, in order, of every variant with clusters."""
    write_tsv(output, institution_table(pd.read_csv(runs, sep="\t"), read_histories(histories), counterparts))


def institution_table(
    runs: pd.DataFrame, histories: Mapping[str, pd.DataFrame], counterparts: Mapping[str, str]
) -> pd.DataFrame:
    """Accuracy and gain over local training of every variant by both scorings.

    Args:
        runs: `scores.RUN_COLUMNS`; the accuracies of single institutions are the last models'.
        histories: variant with clusters -> `HISTORY`, cluster and repeat.
        counterparts: federated variant -> the same model trained in every institution alone.

    Returns:
        `COLUMNS`: mean over institutions of the accuracy, its mean and sd over runs; institution_sd, mean over
        institutions of an institution's sd over runs, the paper's spread; min_gain, the smallest mean gain of an
        institution over its counterpart's last model, improved and equal, the numbers of institutions with a gain above
        0 and of 0. The gain is the mean over runs of paired differences; empty without a counterpart.

    Raises:
        UserError: the last round of a history is not what the runs score.
    """
    single = _of_institutions(runs[runs["metric"] == "accuracy"]).dropna(subset=["value"])
    last = {str(name): own[[*ONE, "value"]] for name, own in single.groupby("variant", sort=False)}
    scored = last | {name: best_of_kept(name, last[name], history) for name, history in histories.items()}
    rows = [
        {
            "variant": name,
            "scoring": scoring,
            **_averages(values[name]),
            "twin": counterparts.get(name, ""),
            **_gains(values[name], last.get(counterparts.get(name, ""))),
        }
        for name in last
        for scoring, values in ((LAST, last), (PAPER_SCORING, scored))
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"improved": "Int64", "equal": "Int64"})


def best_of_kept(variant: str, last: pd.DataFrame, history: pd.DataFrame) -> pd.DataFrame:
    """The best test accuracy of the kept models of every institution and run, in place of that of the last model.

    `last` has `ONE` and value; the variant's history `HISTORY`, cluster (null without) and repeat.

    Raises:
        UserError: the last round of the history is not what `last` holds.
    """
    best = {}
    for run, own in history.groupby(RUN):
        accuracy = own.pivot(index="round", columns="institution", values="test_accuracy").sort_index()
        clusters = own.pivot(index="round", columns="institution", values="cluster").loc[accuracy.index]
        kept = kept_models(clusters.fillna(0).to_numpy(np.int64))
        best[run] = pd.DataFrame({"best": accuracy.where(kept).max(), "end": accuracy.iloc[-1]})
    both = last.merge(pd.concat(best, names=ONE).reset_index(), on=ONE, how="left", validate="one_to_one")
    if not np.allclose(both["value"], both["end"]):
        raise UserError(
            f"{variant}: expected the accuracies of its predictions in the last round of its history, found others; "
            "delete the variant's folder and run again."
        )
    return both[[*ONE, "best"]].rename(columns={"best": "value"})


def kept_models(clusters: IntArray) -> BoolArray:
    """(T, M) whether an institution's model after a round is kept: its cluster is cut next, or the round is the last.

    `clusters` (T, M) are numbers of the institutions' clusters after every round; clusters are cut and never joined.
    """
    kept = np.zeros(clusters.shape, dtype=bool)
    kept[-1] = True
    for number, (before, after) in enumerate(pairwise(clusters)):
        for cluster in np.unique(before[before != after]):
            kept[number, before == cluster] = True
    return kept


def read_histories(files: Mapping[str, Sequence[str]]) -> dict[str, pd.DataFrame]:
    """Histories of all repeats, from variant -> their files in order; a file without clusters has null ones."""
    histories = {}
    for variant, paths in files.items():
        parts = [read_table(path, HISTORY).assign(repeat=repeat) for repeat, path in enumerate(paths)]
        for part in parts:
            if "cluster" not in part:
                part["cluster"] = pd.array([None] * len(part), dtype="Int32")
        histories[variant] = pd.concat(parts, ignore_index=True)
    return histories


def _averages(values: pd.DataFrame) -> dict[str, float | int]:
    of_runs = values.groupby(RUN)["value"].mean()
    spread = float(values.groupby("institution")["value"].std(ddof=1).mean())
    return {"accuracy": of_runs.mean(), "sd": of_runs.std(ddof=1), "institution_sd": spread, "runs": len(of_runs)}


def _gains(values: pd.DataFrame, counterpart: pd.DataFrame | None) -> dict[str, float | int | None]:
    if counterpart is None:
        return {"min_gain": np.nan, "improved": None, "equal": None, "institutions": values["institution"].nunique()}
    paired = values.merge(counterpart, on=ONE, suffixes=("", "_counterpart"), validate="one_to_one")
    gain = (paired["value"] - paired["value_counterpart"]).groupby(paired["institution"]).mean().round(EXACT)
    return {
        "min_gain": float(gain.min()),
        "improved": int((gain > 0).sum()),
        "equal": int((gain == 0).sum()),
        "institutions": len(gain),
    }
