"""Labels of test subjects are hidden in one place, and samples that show one are refused."""

from dataclasses import replace

import numpy as np
import pytest

from brainfed.runtime.streams import Streams
from brainfed.samples.labelled_subjects import LabelledSubjects, hidden_labels

TRUTH = np.array([2, 1, 0, 1, -1])
FOLD = np.array([0, 1, 0, 1, -1])


def subjects(labels):
    return LabelledSubjects(tuple("abcde"), ("east",), np.zeros(5, dtype=np.int64), FOLD, labels, Streams(1), classes=3)


def test_a_subject_shows_its_label_in_all_folds_but_its_own():
    assert hidden_labels(TRUTH, FOLD).tolist() == [[-1, 1, -1, 1, -1], [2, -1, 0, -1, -1]]


def test_a_subject_that_is_never_tested_shows_none():
    assert hidden_labels(np.array([0, 1, 1]), np.array([0, 1, -1]))[:, 2].tolist() == [-1, -1]


def test_samples_with_the_label_of_a_tested_subject_are_refused():
    found = subjects(hidden_labels(TRUTH, FOLD))
    assert found.training(0).tolist() == [False, True, False, True, False]
    assert found.tested(1).tolist() == [False, True, False, True, False]
    shown = found.labels.copy()
    shown[1, 3] = 1
    with pytest.raises(ValueError, match="must not have the label"):
        replace(found, labels=shown)
