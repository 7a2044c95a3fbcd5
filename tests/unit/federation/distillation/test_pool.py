"""The pool is a running mean of right logits, fold by fold and sample by sample."""

import pytest
import torch

from brainfed.federation.distillation.pool import LogitPool

ROWS = torch.tensor([[2, 0], [1, 1]])


def filled(momentum, *values):
    """A pool of two folds after batches with constant logits; the second sample of the second fold is never right."""
    pool = LogitPool(2, 3, 2, momentum)
    for value in values:
        pool.update(ROWS, torch.full((2, 2, 2), value), torch.tensor([[True, True], [True, False]]))
    return pool


def test_the_first_right_logits_enter_as_they_are():
    pool = filled(0.8, 5.0)
    assert pool.logits(ROWS).unique().tolist() == [5]
    assert pool.known(torch.tensor([[0, 1, 2], [0, 1, 2]])).tolist() == [[True, False, True], [False, True, False]]


def test_later_logits_move_the_mean_by_a_fifth():
    assert float(filled(0.8, 1.0, 2.0, 7.0).logits(ROWS)[0, 0, 0]) == pytest.approx(0.8 * 1.2 + 0.2 * 7)


def test_without_momentum_the_last_right_logits_stay():
    assert float(filled(0.0, 1.0, 2.0, 7.0).logits(ROWS)[0, 0, 0]) == 7


def test_logits_of_a_wrong_sample_stay_out_even_at_the_place_of_a_right_one():
    pool = filled(0.8, 1.0)
    logits = torch.tensor([[[3.0, 3.0], [4.0, 4.0]], [[3.0, 3.0], [4.0, 4.0]]])
    pool.update(ROWS, logits, torch.tensor([[False, False], [True, False]]))
    assert pool.logits(ROWS)[..., 0].flatten().tolist() == pytest.approx([1, 1, 1.4, 1.4])


def test_the_pool_holds_no_gradient():
    pool = LogitPool(1, 1, 2, 0.8)
    pool.update(torch.zeros(1, 1, dtype=torch.int64), torch.ones(1, 1, 2, requires_grad=True), torch.ones(1, 1) > 0)
    assert not pool.logits(torch.zeros(1, 1, dtype=torch.int64)).requires_grad
