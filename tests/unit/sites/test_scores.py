"""Scores from counts of sites: by hand, and equal to those of the pooled predictions."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, recall_score, roc_auc_score

from brainfed.evaluation import POOLED, score_runs
from brainfed.runtime import UserError
from brainfed.sites._scores import (
    at_site,
    auc_by_run,
    by_run,
    in_both,
    measures,
    of_all,
    over_runs,
    over_sites,
    read_counts,
    standard_errors,
    subjects,
)
from support.sites.study_outcome import REPEATS, SITES, VARIANTS, sent


def row(counts, repeat=0, fold=0, variant="v", auc=None):
    counts = np.array(counts)
    return {
        "variant": variant, "repeat": repeat, "fold": fold, "subjects": int(counts.sum()), "counts": counts.tolist(),
        "measures": {"auc": auc},
    }  # fmt: skip


def counts_of(**sites):
    return read_counts(sites, len(next(iter(sites.values()))[0]["counts"]))["v"]


TWO_SITES = counts_of(
    east=[row([[4, 1], [2, 3]], fold=0), row([[3, 2], [1, 4]], fold=1), row([[5, 0], [5, 0]], repeat=1)],
    west=[row([[2, 0], [1, 5]], fold=0), row([[1, 3], [0, 2]], fold=1), row([[0, 6], [0, 8]], repeat=1)],
)
"""Repeat 0: controls 5 + 5 + 2 + 4, of whom 4 + 3 + 2 + 1 are recognised; patients 5 + 5 + 6 + 2, 3 + 4 + 5 + 2.
Repeat 1: controls 5 + 6, of whom 5 are recognised; patients 5 + 8, of whom 8 are."""


def test_measures_by_hand():
    found = measures(np.array([[6, 2], [1, 3]]))
    assert found == {"balanced_accuracy": 0.75, "accuracy": 0.75, "recall": 0.75, "specificity": 0.75}
    assert measures(np.array([[9, 1], [1, 1]])) == pytest.approx(
        {"balanced_accuracy": 0.7, "accuracy": 10 / 12, "recall": 0.5, "specificity": 0.9}
    )


def test_three_classes_have_the_mean_of_three_shares_and_no_sensitivity():
    found = measures(np.array([[4, 0, 0], [1, 1, 2], [0, 3, 1]]))
    assert found == {"balanced_accuracy": 0.5, "accuracy": 0.5}


def test_a_class_without_subjects_leaves_balanced_accuracy_undefined():
    found = measures(np.array([[0, 0], [1, 3]]))
    assert np.isnan(found["balanced_accuracy"]) and np.isnan(found["specificity"])
    assert found["accuracy"] == found["recall"] == 0.75
    assert np.isnan(list(measures(np.zeros((2, 2), int)).values())).all()


def test_counts_of_all_sites_and_folds_are_added_up_and_repeats_averaged():
    first, second = (10 / 16 + 14 / 18) / 2, (5 / 11 + 8 / 13) / 2
    assert of_all(TWO_SITES, "balanced_accuracy") == pytest.approx((first + second) / 2)
    assert of_all(TWO_SITES, "recall") == pytest.approx((14 / 18 + 8 / 13) / 2)
    assert of_all(TWO_SITES, "accuracy") == pytest.approx((24 / 34 + 13 / 24) / 2)


def test_a_run_is_a_fold_of_all_sites():
    found = by_run(TWO_SITES, "balanced_accuracy")
    assert list(found) == [(0, 0), (0, 1), (1, 0)]
    assert found[0, 0] == pytest.approx((6 / 7 + 8 / 11) / 2)
    assert found[0, 1] == pytest.approx((4 / 9 + 6 / 7) / 2)


def test_one_site_alone_has_its_own_counts():
    east = at_site(TWO_SITES, "east")
    assert of_all(east, "balanced_accuracy") == pytest.approx(((7 / 10 + 7 / 10) / 2 + 0.5) / 2)
    assert at_site(TWO_SITES, "north") == []


def test_subjects_are_those_of_the_fullest_repeat_and_not_of_all_repeats():
    assert (subjects(TWO_SITES, 2).tolist(), subjects([], 2).tolist()) == ([16, 18], [0, 0])


def test_a_repeat_without_a_class_is_left_out_of_the_mean():
    folds = counts_of(east=[row([[3, 1], [0, 4]]), row([[4, 1], [0, 0]], repeat=1)])
    assert of_all(folds, "balanced_accuracy") == pytest.approx(0.875)
    assert list(by_run(folds, "balanced_accuracy")) == [(0, 0)]


def test_the_auc_is_a_mean_over_the_sites_that_have_one():
    folds = counts_of(
        east=[row([[3, 0], [0, 3]], auc=0.9), row([[3, 0], [0, 3]], fold=1)],
        west=[row([[3, 0], [0, 3]], auc=0.5), row([[3, 0], [0, 3]], fold=1, auc=0.6)],
    )
    assert auc_by_run(folds) == pytest.approx({(0, 0): 0.7, (0, 1): 0.6})


def test_two_variants_are_compared_on_the_folds_that_both_have():
    one = counts_of(east=[row([[3, 0], [0, 3]]), row([[3, 0], [0, 3]], fold=1)], west=[row([[3, 0], [0, 3]])])
    other = counts_of(east=[row([[2, 1], [0, 3]], fold=1)], west=[row([[2, 1], [0, 3]])])
    first, second = in_both(one, other)
    assert [(fold.site, fold.run) for fold in first] == [("east", (0, 1)), ("west", (0, 0))]
    assert [(fold.site, fold.run) for fold in second] == [("east", (0, 1)), ("west", (0, 0))]


def test_the_interval_over_runs_is_corrected_and_stands_around_the_value():
    values = [0.6, 0.7, 0.65, 0.75]
    low, high = over_runs(0.68, values, 1 / 3)
    reach = stats.t.ppf(0.975, 3) * np.sqrt((1 / 4 + 1 / 3) * np.var(values, ddof=1))
    assert (low, high) == pytest.approx((0.68 - reach, 0.68 + reach))
    assert np.isnan(over_runs(0.68, [0.6], 1 / 3)).all()


def test_the_interval_over_three_sites_is_that_of_students_t():
    found = over_sites([0.6, np.nan, 0.7, 0.8])
    assert found.difference == pytest.approx(0.7)
    assert found.ci_high - found.difference == pytest.approx(4.302653 * 0.1 / np.sqrt(3))
    assert standard_errors(3) == pytest.approx(4.302653)
    assert np.isnan(over_sites([0.6]).ci_low) and np.isnan(over_sites([]).difference)


@pytest.mark.parametrize("names", [(), ("CN", "MCI", "AD")], ids=["two", "three"])
def test_counts_say_what_pooled_predictions_would_say(tmp_path, names):
    sites = {name: (*counts, 18)[: max(len(names), 2)] for name, counts in SITES.items()}
    rows, everybody = sent(tmp_path, sites, folds=2, names=names)
    assert sum(len(each) for each in rows.values()) == len(sites) * len(VARIANTS) * 2 * REPEATS
    found = read_counts(rows, max(len(names), 2))
    columns = [f"score-{name}" for name in names]
    for variant in VARIANTS:
        expected = []
        for repeat in range(REPEATS):
            part = everybody[(everybody["variant"] == variant) & (everybody["repeat"] == repeat)]
            called = part[columns].to_numpy().argmax(axis=1) if names else (part["score"] > 0.5).astype(int)
            expected.append(balanced_accuracy_score(part["label"], called))
            if not names:
                one = [fold for fold in found[variant] if fold.run[0] == repeat]
                assert of_all(one, "recall") == pytest.approx(recall_score(part["label"], called))
                total = sum(fold.counts for fold in one)
                np.testing.assert_array_equal(total, confusion_matrix(part["label"], called))
        assert of_all(found[variant], "balanced_accuracy") == pytest.approx(np.mean(expected), abs=1e-12)


def test_runs_are_those_of_a_report_that_has_all_predictions(tmp_path):
    rows, everybody = sent(tmp_path)
    runs = score_runs(everybody)
    found = read_counts(rows, 2)
    for variant in VARIANTS:
        for metric in ("balanced_accuracy", "accuracy", "recall", "specificity"):
            own = runs[(runs["variant"] == variant) & (runs["scope"] == POOLED) & (runs["metric"] == metric)]
            np.testing.assert_allclose(list(by_run(found[variant], metric).values()), own["value"], atol=1e-12)
        own = runs[(runs["variant"] == variant) & (runs["scope"] == "institution") & (runs["metric"] == "auc")]
        np.testing.assert_allclose(list(auc_by_run(found[variant]).values()), own["value"], atol=1e-12)
        part = everybody[(everybody["variant"] == variant) & (everybody["repeat"] == 0)]
        pooled = roc_auc_score(part["label"], part["score"])
        assert abs(np.mean(list(auc_by_run(found[variant]).values())) - pooled) > 1e-6


@pytest.mark.parametrize(
    "change", [{"counts": [[1, 2], [3, -1]]}, {"counts": [[5]]}, {"subjects": 7}], ids=["negative", "shape", "sum"]
)
def test_counts_that_cannot_be_are_refused_with_the_name_of_the_site(change):
    with pytest.raises(UserError, match="site 'east': expected the counts of"):
        read_counts({"east": [row([[1, 1], [1, 2]]) | change]}, 2)
