"""Local steps of equal number, and of each institution's own."""

import numpy as np
import torch

from brainfed.engines import Batches
from brainfed.runtime import Streams


def labels():
    """Three institutions of 10, 3 and 6 subjects; one of them trains nobody in fold 1."""
    held = torch.full((3, 2, 10), -1)
    held[0, :, :8], held[1, :, :2], held[2, 0, :5] = 1, 0, 1
    return held


def steps(even, size=3):
    return Batches(size, (10, 3, 6), (0, 4), Streams(1), even=even).of(labels(), 2, 1)


def test_even_steps_are_as_many_as_the_largest_institution_needs():
    counts = torch.stack([(step >= 0).sum(dim=2) for step in steps(even=True)])
    assert len(counts) == 4
    assert counts[:, 0, 0].tolist() == [2, 2, 2, 2]
    assert counts[:, 1, 0].tolist() == [1, 1, 0, 0]


def test_own_steps_are_as_many_as_the_institutions_training_subjects_need():
    counts = torch.stack([(step >= 0).sum(dim=2) for step in steps(even=False)])
    assert counts[:, 0, 0].tolist() == [3, 3, 2]
    assert counts[:, 1, 0].tolist() == [2, 0, 0]
    assert counts[:, 2].T.tolist() == [[3, 2, 0], [0, 0, 0]]


def test_every_labelled_subject_is_in_one_step():
    for even in (True, False):
        found = torch.stack(steps(even))
        np.testing.assert_array_equal((found >= 0).sum(dim=0), labels() >= 0)
        np.testing.assert_array_equal(found.max(dim=0).values, labels())


def test_own_steps_do_not_depend_on_other_institutions_or_folds():
    found = steps(even=False)
    alone = Batches(3, (10,), (0,), Streams(1), even=False).of(labels()[:1, :1], 2, 1)
    for step, other in zip(found, alone, strict=True):
        assert torch.equal(step[:1, :1], other)


def test_one_step_holds_all_where_nobody_has_more_than_a_batch():
    (only,) = steps(even=False, size=8)
    assert torch.equal(only, labels())
