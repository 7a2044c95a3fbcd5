"""Scores from what sites send at the end of a study: tested subjects by true and predicted class, of each fold.

Counts add up over sites and folds, so accuracy, balanced accuracy, sensitivity and specificity of all subjects together
are those of pooled predictions. An AUC does not add up: that of all sites is the mean of the sites' own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from brainfed.evaluation import (
    CONFIDENCE,
    POOLED,
    CorrectedTest,
    class_names,
    corrected_t_test,
    predicted,
    read_predictions,
    score_runs,
)
from brainfed.runtime import UserError

TWO_CLASSES = ("balanced_accuracy", "accuracy", "recall", "specificity")
MORE_CLASSES = ("balanced_accuracy", "accuracy")
Counts = NDArray[np.int64]
Run = tuple[int, int]
"""Repeat and fold."""


@dataclass(frozen=True)
class TestedFold:
    """What a site says of one fold of a variant.

    Attributes:
        site: its name.
        run: repeat and fold.
        counts: (true class, predicted class) -> tested subjects.
        auc: the site's own; NaN where it is undefined.
    """

    site: str
    run: Run
    counts: Counts
    auc: float


def read_counts(scores: Mapping[str, Sequence[Mapping[str, Any]]], classes: int) -> dict[str, list[TestedFold]]:
    """Variant -> what all sites say of it in their rows (`site_scores`), in the order of sites, repeats and folds.

    Raises:
        UserError: counts of a row are of other classes, negative, or those of another number of subjects.
    """
    folds: dict[str, list[TestedFold]] = {}
    for site, rows in scores.items():
        for row in sorted(rows, key=lambda row: (row["repeat"], row["fold"])):
            counts = np.array(row["counts"], dtype=np.int64)
            if counts.shape != (classes, classes) or (counts < 0).any() or counts.sum() != row["subjects"]:
                raise UserError(
                    f"site {site!r}: expected the counts of {row['subjects']} tested subjects by {classes} true and "
                    f"predicted classes, found {row['counts']} for {row['variant']}, repeat {row['repeat']}, fold "
                    f"{row['fold']}; compare the site's classes with those of the study."
                )
            auc = row["measures"].get("auc")
            fold = TestedFold(site, (row["repeat"], row["fold"]), counts, np.nan if auc is None else float(auc))
            folds.setdefault(row["variant"], []).append(fold)
    return folds


def measures(counts: Counts) -> dict[str, float]:
    """Measures of a table of counts; of two classes 1 is the positive one.

    Balanced accuracy is the mean over classes of the share that is recognised. It is NaN if a class has no subject.
    """
    of_class = counts.sum(axis=1)
    recognised = np.divide(np.diagonal(counts), of_class, out=np.full(len(counts), np.nan), where=of_class > 0)
    total = int(of_class.sum())
    rates = {
        "balanced_accuracy": float(recognised.mean()),
        "accuracy": float(np.trace(counts)) / total if total else np.nan,
    }
    return rates | {"recall": float(recognised[1]), "specificity": float(recognised[0])} if len(counts) == 2 else rates


def of_all(folds: Sequence[TestedFold], metric: str) -> float:
    """The measure of all folds' subjects together, the mean over repeats; NaN where no repeat has one."""
    values = [measures(counts)[metric] for counts in _added(folds, whole_repeats=True).values()]
    defined = [value for value in values if np.isfinite(value)]
    return float(np.mean(defined)) if defined else np.nan


def by_run(folds: Sequence[TestedFold], metric: str) -> dict[Run, float]:
    """The measure of each fold of each repeat, of all sites' subjects together, where it is defined."""
    values = {run: measures(counts)[metric] for run, counts in _added(folds).items()}
    return {run: value for run, value in values.items() if np.isfinite(value)}


def auc_by_run(folds: Sequence[TestedFold]) -> dict[Run, float]:
    """The mean over sites of their own AUCs, of each fold of each repeat that has one."""
    aucs: dict[Run, list[float]] = {}
    for fold in folds:
        if np.isfinite(fold.auc):
            aucs.setdefault(fold.run, []).append(fold.auc)
    return {run: float(np.mean(values)) for run, values in sorted(aucs.items())}


def at_site(folds: Sequence[TestedFold], site: str) -> list[TestedFold]:
    """What one site says."""
    return [fold for fold in folds if fold.site == site]


def in_both(first: Sequence[TestedFold], second: Sequence[TestedFold]) -> tuple[list[TestedFold], list[TestedFold]]:
    """The folds of sites that two variants both have: the same subjects."""
    keys = {(fold.site, fold.run) for fold in first} & {(fold.site, fold.run) for fold in second}
    own, others = ([fold for fold in folds if (fold.site, fold.run) in keys] for folds in (first, second))
    return own, others


def subjects(folds: Sequence[TestedFold], classes: int) -> Counts:
    """(classes,) tested subjects by true class, of the repeat that has most: a repeat tests each subject once."""
    repeats = [counts.sum(axis=1) for counts in _added(folds, whole_repeats=True).values()]
    return max(repeats, key=lambda each: int(each.sum()), default=np.zeros(classes, dtype=np.int64))


def over_runs(value: float, runs: Sequence[float], ratio: float) -> tuple[float, float]:
    """A 95 % interval around a value: Nadeau and Bengio's, for runs whose training sets overlap.

    Its reach is that of the mean over runs. The value is that of all subjects together, which differs from this mean
    only as folds differ in size.

    Args:
        value: of all runs' subjects together.
        runs: a value each run.
        ratio: n_test / n_train of a run.
    """
    interval = corrected_t_test(np.array(runs, dtype=np.float64), ratio)
    reach = (interval.ci_high - interval.ci_low) / 2
    return value - reach, value + reach


def over_sites(values: Sequence[float]) -> CorrectedTest:
    """The mean over sites with Student's 95 % interval, of sites - 1 degrees of freedom; NaN bounds below two sites.

    It takes the sites for a sample of all such sites. They share models, so that their scores are not independent.
    """
    return corrected_t_test(np.array([value for value in values if np.isfinite(value)], dtype=np.float64), 0.0)


def standard_errors(sites: int) -> float:
    """Half the width of the interval over so many sites, in standard errors of their mean."""
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, sites - 1))


def _added(folds: Sequence[TestedFold], *, whole_repeats: bool = False) -> dict[Run, Counts]:
    """Counts of all sites together by run, or by repeat (fold 0)."""
    counts: dict[Run, Counts] = {}
    for fold in folds:
        key = (fold.run[0], 0 if whole_repeats else fold.run[1])
        counts[key] = counts[key] + fold.counts if key in counts else fold.counts
    return dict(sorted(counts.items()))


# What a site says of its scores at the end: counts and measures of its test folds, of no single person.

FEWEST_TESTED = 5
"""Tested subjects of a fold below which its row is not sent: a measure of so few would be theirs."""


def site_scores(runs: Sequence[tuple[str, int]], files: Sequence[str]) -> list[dict[str, Any]]:
    """A row a variant, repeat and fold: numbers of tested subjects by true and predicted class, and the measures.

    They come from this site's predictions, a file a run (variant and repeat).
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
