"""The pool, losses and objectives against numbers computed by hand."""

from math import log

import pytest
import torch

from brainfed.federation.distillation import (
    FedETObjective,
    FedGEMSObjective,
    GAHFLObjective,
    PublicBatch,
    initial_weights,
    local_loss,
)
from brainfed.federation.distillation._fedgems import entropy_weights
from brainfed.federation.distillation._objective import LogitPool, batch_mean, cross_entropy, entropy, kl
from brainfed.runtime import Streams

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


RIGHT, WRONG, SURE = [0.0, log(3)], [log(3), 0.0], [0.0, log(9)]

"""Logits of the probabilities (1/4, 3/4), (3/4, 1/4) and (1/10, 9/10); the label is always 1."""

WRONG_FROM_SURE = 0.1 * log(0.1 / 0.75) + 0.9 * log(0.9 / 0.25)
"""KL of SURE and WRONG."""


def one_fold(logits, *teachers, present=None):
    """A batch of one fold, whose samples are rows 0, 1, ... and have label 1."""
    places = torch.arange(len(logits))[None]
    return PublicBatch(
        logits=torch.tensor([logits], dtype=torch.float64, requires_grad=True),
        labels=torch.ones_like(places),
        weight=torch.ones(1, len(logits)),
        rows=places,
        teachers=torch.tensor(teachers, dtype=torch.float64)[:, None],
        present=torch.tensor(present or [True] * len(teachers))[:, None],
    )


def gahfl(**settings):
    start = {name: tensor.double() for name, tensor in initial_weights(Streams(0), (0,), 2).items()}
    return GAHFLObjective(3, 2, start, **settings)


def fedgems(**settings):
    return FedGEMSObjective(1, 3, 2, dtype=torch.float64, **settings)


@pytest.mark.parametrize("make", [gahfl, fedgems])
def test_right_and_never_right_samples(make):
    gamma = 10 if make is gahfl else 1
    loss = make().loss(one_fold([RIGHT, WRONG], [SURE, SURE]))
    expected = log(4 / 3) + gamma * (0.4 * log(4) + 0.6 * WRONG_FROM_SURE)
    assert loss.tolist() == pytest.approx([expected / 2])


@pytest.mark.parametrize("make", [gahfl, fedgems])
def test_a_sample_that_was_right_before_learns_from_the_pool(make):
    objective = make()
    objective.loss(one_fold([RIGHT], [SURE]))
    loss = objective.loss(one_fold([WRONG], [SURE]))
    assert loss.tolist() == pytest.approx([0.5 * log(4) + 0.5 * (log(3) / 2)])


def test_the_pool_of_gahfl_is_a_mean_and_that_of_fedgems_the_last_logits():
    losses = []
    for objective in (gahfl(epsilon=0.0), fedgems(epsilon=0.0)):
        objective.loss(one_fold([RIGHT], [SURE]))
        objective.loss(one_fold([SURE], [SURE]))
        losses.append(objective.loss(one_fold([WRONG], [SURE])).item())
    mean = 0.8 * log(3) + 0.2 * log(9)
    share = 1 / (1 + torch.tensor(mean).exp().item())
    assert losses[0] == pytest.approx(share * log(share / 0.75) + (1 - share) * log((1 - share) / 0.25))
    assert losses[1] == pytest.approx(WRONG_FROM_SURE)


@pytest.mark.parametrize(
    ("drop", "first", "second"),
    [
        ("bce", 10 * (0.4 * log(4) + 0.6 * WRONG_FROM_SURE), 0.5 * log(4) + 0.5 * (log(3) / 2)),
        ("sd", log(4 / 3) + 10 * (0.4 * log(4) + 0.6 * WRONG_FROM_SURE), 10 * (0.4 * log(4) + 0.6 * WRONG_FROM_SURE)),
        ("wd", log(4 / 3), 0.5 * log(4) + 0.5 * (log(3) / 2)),
    ],
)
def test_ablations_leave_out_their_term(drop, first, second):
    objective = gahfl(drop=drop)
    assert objective.loss(one_fold([RIGHT, WRONG], [SURE, SURE])).tolist() == pytest.approx([first / 2])
    assert objective.loss(one_fold([WRONG], [SURE])).tolist() == pytest.approx([second])


@pytest.mark.parametrize(("teacher", "present"), [(WRONG, True), (SURE, False)])
def test_without_a_right_model_the_labels_alone_count(teacher, present):
    batch = one_fold([WRONG], [teacher], present=[present])
    assert gahfl().loss(batch).tolist() == pytest.approx([10 * 0.4 * log(4)])
    assert fedgems(ensemble="right").loss(batch).tolist() == pytest.approx([0.4 * log(4)])


def test_fedgems_weighs_by_the_softmax_of_inverse_entropies():
    teachers = torch.tensor([[0.0, 0.0], RIGHT, SURE], dtype=torch.float64)
    entropies = [log(2), log(4) - 0.75 * log(3), log(10) - 0.9 * log(9)]
    powers = torch.tensor([1 / each for each in entropies], dtype=torch.float64).exp()
    found = entropy_weights(teachers, torch.tensor([True, True, True]))
    torch.testing.assert_close(found, powers / powers.sum())
    found = entropy_weights(teachers, torch.tensor([True, False, True]))
    torch.testing.assert_close(found, powers * torch.tensor([1, 0, 1]) / (powers[0] + powers[2]))
    assert entropy_weights(teachers, torch.zeros(3) > 0).tolist() == [0, 0, 0]


def test_certain_models_share_the_weight_of_fedgems():
    teachers = torch.tensor([[0.0, 500.0], [800.0, 0.0], [0.0, 1.0]])
    assert entropy_weights(teachers, torch.ones(3) > 0).tolist() == [0.5, 0.5, 0]


def test_a_wrong_model_teaches_in_fedgems_only_if_all_do():
    batch = one_fold([WRONG], [SURE], [WRONG])
    right_alone = 0.4 * log(4) + 0.6 * WRONG_FROM_SURE
    assert fedgems(ensemble="right").loss(batch).tolist() == pytest.approx([right_alone])
    weights = entropy_weights(batch.teachers[:, 0, 0], torch.ones(2) > 0)
    mixed = float(weights[0] * log(9) - weights[1] * log(3))
    share = 1 / (1 + torch.tensor(-mixed).exp().item())
    divergence = (1 - share) * log((1 - share) / 0.75) + share * log(share / 0.25)
    assert fedgems().loss(batch).tolist() == pytest.approx([0.4 * log(4) + 0.6 * divergence])


def test_fedet_weighs_the_consensus_by_variance_and_adds_the_dissent():
    # variances (ln 9)^2 / 4 and (ln 3)^2 / 4, shares 4/5 and 1/5; the consensus' logit: 4/5 ln 9 - 1/5 ln 3 = 7/5 ln 3
    loss = FedETObjective().loss(one_fold([RIGHT], [SURE], [WRONG]))
    share = 3**1.4 / (1 + 3**1.4)
    consensus = (1 - share) * log((1 - share) / 0.25) + share * log(share / 0.75)
    dissent = log(3) / 2  # KL((3/4, 1/4) || (1/4, 3/4))
    assert loss.tolist() == pytest.approx([log(4 / 3) + consensus + 0.05 * dissent])


@pytest.mark.parametrize("present", [[True, False], [False, False]])
def test_fedet_without_dissent_or_without_institutions(present):
    loss = FedETObjective(consensus=2.0).loss(one_fold([RIGHT], [SURE], [WRONG], present=present))
    divergence = 0.1 * log(0.1 / 0.25) + 0.9 * log(0.9 / 0.75)
    assert loss.tolist() == pytest.approx([log(4 / 3) + 2 * present[0] * divergence])


def test_constant_logits_have_equal_weights_in_fedet():
    loss = FedETObjective().loss(one_fold([RIGHT], [[1.0, 1.0]], [[5.0, 5.0]]))
    assert loss.tolist() == pytest.approx([log(4 / 3) + log(4 / 3) / 2])
