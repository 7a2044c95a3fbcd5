"""The five tables of an experiment, from the predictions of all variants and repeats."""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd

from brainfed.evaluation._metrics import read_predictions
from brainfed.evaluation._scores import (
    INSTITUTION,
    POOLED,
    confusion_table,
    gain_over_counterparts,
    institutions_unseen,
    score_runs,
    summarise,
)
from brainfed.evaluation._statistics import compare, holm
from brainfed.runtime import UserError, read_table, write_tsv

TESTED_METRICS = ("accuracy", "auc")


def score_experiment(
    runs: Sequence[tuple[str, int]],
    files: Sequence[str],
    splits: Sequence[str],
    *,
    counterparts: Mapping[str, Mapping[str, str]],
    reference: str,
    outputs: Mapping[str, str],
    participants: str | None = None,
    pooled: bool = True,
) -> None:
    """Write the summary, runs, tests against `reference`, gains over counterparts and confusion matrices.

    Args:
        splits: the split of each repeat, in order: every variant must have scored exactly its subjects.
        counterparts: federated variant -> `alone` and `pooled` -> the same model without federation; the gain table
            has a row for each given counterpart.
        outputs: paths by the keys summary, runs, tests, gain, confusion.
        participants: the labels, where subjects train that no fold tests; None: all are tested once.
        pooled: whether the scope of that name is tested: a class means the same in all institutions.
    """
    predictions = read_predictions(runs, files)
    check_split(predictions, splits)
    scores = score_runs(predictions)
    write_tsv(outputs["summary"], summarise(scores))
    write_tsv(outputs["runs"], scores)
    ratio = test_train_ratio(predictions) if participants is None else ratio_of_splits(splits, participants)
    tests = compare_with_reference(scores, reference, ratio, pooled=pooled)
    write_tsv(outputs["tests"], tests)
    write_tsv(outputs["gain"], gain_over_counterparts(scores, counterparts))
    write_tsv(outputs["confusion"], confusion_table(predictions))


def compare_with_reference(runs: pd.DataFrame, reference: str, ratio: float, *, pooled: bool = True) -> pd.DataFrame:
    """Test every variant against the reference in every tested metric and scope that has runs.

    If a run tests one institution alone, its pooled score equals that institution's score and is not tested twice.

    Returns:
        `TEST_COLUMNS` and scope. Holm's correction counts all rows with a p: variants, metrics and scopes.

    Raises:
        UserError: the reference has no run in a metric and scope that others have.
    """
    scopes = (INSTITUTION, POOLED) if pooled and not institutions_unseen(runs) else (INSTITUTION,)
    known = set(zip(runs["metric"], runs["scope"], strict=True))
    tested = [pair for pair in product(TESTED_METRICS, scopes) if pair in known]
    parts = [compare(runs, reference, metric, scope, ratio).assign(scope=scope) for metric, scope in tested]
    tests = pd.concat(parts, ignore_index=True)
    return tests.assign(p_holm=holm(tests["p_corrected"].to_numpy(dtype=np.float64)))


def check_split(predictions: pd.DataFrame, splits: Sequence[str]) -> None:
    """Check that every variant scored the same subjects, in the same folds and institutions.

    Raises:
        UserError: a variant's predictions belong to another split.
    """
    key = ["subject", "institution", "fold"]
    for repeat, path in enumerate(splits):
        drawn = read_table(path, key)[key].query("fold >= 0").sort_values("subject", ignore_index=True)
        for variant, scored in predictions.loc[predictions["repeat"] == repeat].groupby("variant", sort=False):
            used = scored[key].sort_values("subject", ignore_index=True)
            if not used.astype(str).equals(drawn.astype(str)):
                raise UserError(
                    f"{variant}, repeat {repeat}: its predictions are not of the subjects, institutions and folds of "
                    f"{path}; delete the variant's folder and run again."
                )


def test_train_ratio(predictions: pd.DataFrame) -> float:
    """n_test / n_train of a run, the mean over runs, where all subjects train that are tested in other folds.

    NaN if a repeat has one fold, whose training subjects no score shows, as at a real site that is left out: then no
    interval is known.
    """
    tested = predictions.groupby(["variant", "repeat", "fold"]).size()
    total = tested.groupby(["variant", "repeat"]).transform("sum")
    if (total == tested).any():
        return float("nan")
    return float((tested / (total - tested)).mean())


def ratio_of_splits(splits: Sequence[str], participants: str) -> float:
    """n_test / n_train of a run, the mean over runs: labelled subjects train in all folds that do not test them.

    Parts of small institutions are rounded, so that settings do not have it: a tenth of six subjects is one.
    """
    labelled = read_table(participants, ["subject", "diagnosis"]).dropna(subset=["diagnosis"])["subject"]
    ratios = []
    for path in splits:
        drawn = read_table(path, ["subject", "fold"])
        fold = drawn.loc[drawn["subject"].isin(labelled), "fold"]
        tested = fold[fold >= 0].value_counts()
        ratios += (tested / (len(fold) - tested)).tolist()
    return float(sum(ratios) / len(ratios))
