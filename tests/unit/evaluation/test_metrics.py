"""Metrics by hand, against scikit-learn, and where they have no definition."""

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from brainfed.evaluation import METRICS, auc
from brainfed.evaluation._metrics import metrics
from brainfed.evaluation._pooled import roc
from reference.ranking import auc_by_pairs

# Called patients: the first three; 2 true positives, 1 false positive, 1 false negative, 4 true negatives.
LABEL = np.array([1, 1, 0, 1, 0, 0, 0, 0])
SCORE = np.array([0.9, 0.8, 0.7, 0.5, 0.4, 0.3, 0.2, 0.1])


def test_by_hand():
    found = metrics(LABEL, SCORE, 0.5)
    assert tuple(found) == METRICS and found["accuracy"] == pytest.approx(6 / 8)
    assert found["balanced_accuracy"] == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert found["auc"] == pytest.approx(14 / 15) and found["precision"] == pytest.approx(2 / 3)
    assert found["recall"] == pytest.approx(2 / 3) and found["specificity"] == pytest.approx(4 / 5)
    assert found["f1"] == pytest.approx(4 / 6)


def test_a_score_on_the_threshold_is_not_called_a_patient():
    assert metrics(np.array([0, 1]), np.array([0.0, 1e-9]), 0.0)["accuracy"] == 1


def test_one_class_of_controls():
    found = metrics(np.array([0, 0]), np.array([0.1, 0.9]), 0.5)
    assert (found["accuracy"], found["specificity"], found["precision"]) == (0.5, 0.5, 0)
    assert found["f1"] == 0
    assert np.isnan([found["auc"], found["balanced_accuracy"], found["recall"]]).all()


def test_one_class_of_patients():
    found = metrics(np.array([1, 1]), np.array([0.1, 0.9]), 0.5)
    assert (found["recall"], found["precision"]) == (0.5, 1)
    assert np.isnan([found["auc"], found["balanced_accuracy"], found["specificity"]]).all()


def test_no_predicted_patient():
    found = metrics(np.array([0, 1]), np.array([0.1, 0.2]), 0.5)
    assert np.isnan(found["precision"]) and found["f1"] == 0 and found["recall"] == 0
    assert found["auc"] == 1


def test_no_subjects():
    assert np.isnan(list(metrics(np.zeros(0, np.int64), np.zeros(0), 0.5).values())).all()


@given(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from([0.0, 0.2, 0.4, 0.6, 0.8])), min_size=2, max_size=30).filter(
        lambda rows: len({label for label, _ in rows}) == 2
    )
)
@hypothesis_settings(max_examples=60, deadline=None)
def test_agrees_with_scikit_learn(rows):
    label, score = (np.array(values) for values in zip(*rows, strict=True))
    called = (score > 0.5).astype(int)
    found = metrics(label, score, 0.5)
    assert found["accuracy"] == pytest.approx(sk.accuracy_score(label, called))
    assert found["balanced_accuracy"] == pytest.approx(sk.balanced_accuracy_score(label, called))
    assert found["auc"] == pytest.approx(auc_by_pairs(label.tolist(), score.tolist()))
    assert found["precision"] == pytest.approx(sk.precision_score(label, called, zero_division=np.nan), nan_ok=True)
    assert found["recall"] == pytest.approx(sk.recall_score(label, called))
    assert found["specificity"] == pytest.approx(sk.recall_score(label, called, pos_label=0))
    assert found["f1"] == pytest.approx(sk.f1_score(label, called))
    assert_that_ranks_agree(label, score)


@given(
    st.lists(st.tuples(st.integers(0, 1), st.floats(-1e6, 1e6, width=32)), min_size=2, max_size=60).filter(
        lambda rows: len({label for label, _ in rows}) == 2
    )
)
@hypothesis_settings(max_examples=60, deadline=None)
def test_ranks_of_any_scores_agree_with_scikit_learn(rows):
    label, score = (np.array(values) for values in zip(*rows, strict=True))
    assert_that_ranks_agree(label, score)
    assert_that_ranks_agree(label, score.astype(np.float32))


def assert_that_ranks_agree(label, score):
    assert auc(label, score) == pytest.approx(sk.roc_auc_score(label, score), abs=1e-15)
    for own, theirs in zip(roc(label, score), sk.roc_curve(label, score, drop_intermediate=False), strict=False):
        np.testing.assert_allclose(own, theirs, rtol=0, atol=1e-15)
