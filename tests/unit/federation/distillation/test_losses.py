"""Losses of single samples against numbers computed by hand."""

from math import log

import pytest
import torch

from brainfed.federation.distillation.losses import batch_mean, cross_entropy, entropy, kl, local_loss

EVEN, QUARTER = torch.zeros(2, dtype=torch.float64), torch.tensor([0.0, log(3)], dtype=torch.float64)
"""Logits of the probabilities (1/2, 1/2) and (1/4, 3/4)."""


def test_cross_entropy_is_the_log_of_the_labelled_class():
    found = cross_entropy(torch.stack([QUARTER, QUARTER]), torch.tensor([0, 1]))
    assert found.tolist() == pytest.approx([log(4), log(4 / 3)])


def test_kl_goes_from_the_teacher_to_the_student():
    assert float(kl(EVEN, QUARTER)) == pytest.approx(log(4 / 3) / 2)
    assert float(kl(QUARTER, EVEN)) == pytest.approx(0.25 * log(1 / 2) + 0.75 * log(3 / 2))


def test_kl_gives_the_teacher_no_gradient():
    teacher, student = EVEN.clone().requires_grad_(), QUARTER.clone().requires_grad_()
    kl(teacher, student).backward()
    assert teacher.grad is None
    assert student.grad.tolist() == pytest.approx([-0.25, 0.25])  # q - p


def test_entropy_of_an_even_and_of_a_certain_prediction():
    assert float(entropy(EVEN)) == pytest.approx(log(2))
    assert float(entropy(torch.tensor([0.0, 1000.0]))) == 0


def test_mean_leaves_padding_out_and_is_0_without_samples():
    values = torch.tensor([[1.0, 3.0, 50.0], [7.0, 7.0, 7.0]])
    assert batch_mean(values, torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])).tolist() == [2, 0]


def test_local_loss_adds_the_divergence_from_the_global_model():
    logits, labels = torch.stack([QUARTER, QUARTER, 50 * QUARTER])[None], torch.tensor([[1, 0, 0]])
    weight = torch.tensor([[1.0, 1.0, 0.0]])
    alone = (log(4 / 3) + log(4)) / 2
    assert local_loss(logits, labels, weight, None, 5).tolist() == pytest.approx([alone])
    taught = local_loss(logits, labels, weight, torch.zeros_like(logits), 5)
    assert taught.tolist() == pytest.approx([alone + 5 * log(4 / 3) / 2])
