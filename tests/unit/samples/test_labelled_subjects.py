"""Labels of test subjects are hidden in one place, and samples that show one are refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainfed.runtime import Streams, UserError
from brainfed.samples import LabelledSubjects, hidden_labels

TRUTH = np.array([2, 1, 0, 1, -1])
FOLD = np.array([0, 1, 0, 1, -1])


def subjects(labels):
    return LabelledSubjects(tuple("abcde"), ("east",), np.zeros(5, dtype=np.int64), FOLD, labels, Streams(1), classes=3)


def test_a_subject_shows_its_label_in_all_folds_but_its_own():
    assert hidden_labels(TRUTH, FOLD).tolist() == [[-1, 1, -1, 1, -1], [2, -1, 0, -1, -1]]


def test_a_subject_that_no_fold_tests_shows_its_label_in_all_and_one_without_a_label_in_none():
    found = hidden_labels(np.array([0, 1, 1, -1]), np.array([0, 1, -1, -1]))
    assert found[:, 2].tolist() == [1, 1]
    assert found[:, 3].tolist() == [-1, -1]


@given(
    people=st.lists(st.tuples(st.integers(-2, 3), st.integers(-1, 2)), min_size=1, max_size=30),
)
def test_a_label_is_seen_exactly_where_it_is_known_and_not_tested(people):
    fold, truth = np.array([(0, 0), *people]).T
    found = hidden_labels(truth, fold)
    for number, row in enumerate(found.tolist()):
        for label, known, tested in zip(row, truth.tolist(), fold.tolist(), strict=True):
            assert label == (known if known >= 0 and tested != number else -1)
    held = LabelledSubjects(
        tuple(map(str, range(len(fold)))), ("east",), np.zeros(len(fold), int), fold, found, Streams(1), 4
    )
    for number in range(held.folds):
        assert not (held.training(number) & held.tested(number)).any()
        other = hidden_labels(np.where(held.tested(number), 2, truth), fold)
        np.testing.assert_array_equal(found[number], other[number])


def test_samples_with_the_label_of_a_tested_subject_are_refused():
    found = subjects(hidden_labels(TRUTH, FOLD))
    assert found.training(0).tolist() == [False, True, False, True, False]
    assert found.tested(1).tolist() == [False, True, False, True, False]
    shown = found.labels.copy()
    shown[1, 3] = 1
    with pytest.raises(ValueError, match="must not have the label"):
        replace(found, labels=shown)


@pytest.mark.parametrize("wrong", [3, -2])
def test_a_label_that_is_no_class_is_one_sentence(wrong):
    found = subjects(hidden_labels(TRUTH, FOLD))
    labels = found.labels.copy()
    labels[0, 1] = wrong
    with pytest.raises(
        UserError, match=f"labels of fold 0: expected 0 to 2, or -1 where hidden, found {wrong} of subject 'b'"
    ):
        replace(found, labels=labels)
