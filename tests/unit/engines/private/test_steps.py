"""A private step: one subject changes the sum by at most C, Opacus' optimiser does the same, gradients of subjects."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from opacus.optimizers import DPOptimizer
from torch.nn.functional import cross_entropy

from brainfed.engines.private import Moment, Poisson, clip_factors, subject_gradients
from brainfed.engines.private._cohort import add_noise, apply, clipped_sum, make_optimiser, plain_sum
from brainfed.engines.private._training import probabilities
from brainfed.federation import private_normal
from brainfed.runtime import Streams

from .training import PRIVACY, STREAMS, clients_of, made_up, network, schedule

KINDS = {"logistic": 0, "mlp": 0, "convolution": 3}
MOMENT, PART = Moment(0, 1, 1), (1, 0)


def norm(tensors):
    return float(sum(each.square().sum() for each in tensors)) ** 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_each_subject_has_its_own_gradient(kind):
    data, module = made_up(KINDS[kind]), network(kind)
    samples = torch.tensor([1, 4, 5, 8])
    labels = torch.tensor([1, 0, 1, 0])
    rows = data.cohort.rows(*PART, samples, MOMENT, next(module.parameters()))
    found = subject_gradients(module, rows, labels)
    norms = found.norms()
    for place, (subject, label) in enumerate(zip(samples.tolist(), labels, strict=True)):
        parts = data.rows(PART[0], subject, MOMENT)
        loss = sum(cross_entropy(module(*row), label[None]) for row in parts) / len(parts)
        expected = torch.autograd.grad(loss, list(module.parameters()))
        torch.testing.assert_close(found.losses[place], loss.detach())
        assert float(norms[place]) == pytest.approx(norm(expected), rel=1e-10)
        one = found.weighted_sum(torch.eye(len(samples)).double()[place])
        for (name, _), each in zip(module.named_parameters(), expected, strict=True):
            torch.testing.assert_close(one[name], each)
    assert all(parameter.grad is None for parameter in module.parameters())
    assert bool(found.outer) == (kind != "convolution")


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, deadline=None)
@given(
    clip=st.floats(1e-3, 10),
    scale=st.floats(0, 1e3),
    samples=st.sets(st.integers(0, 13), min_size=1, max_size=9),
    who=st.integers(0, 8),
)
def test_one_subject_more_changes_the_sum_by_at_most_the_clip(kind, clip, scale, samples, who):
    data, module = made_up(KINDS[kind]), network(kind)
    data.labels[PART] = torch.arange(14) % 2
    for own in data.values:
        own *= scale
    ordered = sorted(samples)
    without = [each for each in ordered if each != ordered[who % len(ordered)]]
    sums = [
        clipped_sum(module, data.cohort, PART, torch.tensor(each, dtype=torch.int64), MOMENT, clip)[0]
        for each in (ordered, without)
    ]
    assert norm(sums[0][name] - sums[1][name] for name in sums[0]) <= clip * (1 + 1e-9)
    assert norm(sums[0].values()) <= len(ordered) * clip * (1 + 1e-9)


def test_a_short_gradient_stays_and_a_long_one_is_cut():
    factors = clip_factors(torch.tensor([0.0, 0.5, 1.0, 4.0]), 1.0)
    assert factors.tolist() == [1.0, 1.0, 1.0, 0.25]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("multiplier", [0.0, 0.7])
def test_it_is_the_step_of_opacus(kind, multiplier):
    """Its optimiser clips at C / (norm + 1e-6) and reads noise from one generator; here each weight has its own."""
    data, clip, expected_size = made_up(KINDS[kind]), 0.05, 4
    samples = torch.tensor([2, 3, 6, 7, 11])
    ours, theirs = network(kind), network(kind)
    total, _ = clipped_sum(ours, data.cohort, PART, samples, MOMENT, clip)
    add_noise(total, multiplier * clip, STREAMS, 1, 0, MOMENT)
    apply(ours, make_optimiser(ours, schedule()), total, expected_size)

    names = dict(theirs.named_parameters())
    rows = data.cohort.rows(*PART, samples, MOMENT, next(iter(names.values())))
    whole = subject_gradients(theirs, rows, data.labels[PART][samples])
    each_alone = [whole.weighted_sum(chosen) for chosen in torch.eye(len(samples)).double()]
    for name, parameter in names.items():
        parameter.grad_sample = torch.stack([each[name] for each in each_alone])
    optimiser = DPOptimizer(
        torch.optim.SGD(theirs.parameters(), lr=0.3),
        noise_multiplier=0.0,
        max_grad_norm=clip,
        expected_batch_size=expected_size,
    )
    optimiser.step()
    for name, parameter in ours.named_parameters():
        noise = private_normal(STREAMS, parameter.shape, 1, 0, *MOMENT, name)
        noisy = names[name].detach() - 0.3 * noise * multiplier * clip / expected_size
        torch.testing.assert_close(parameter.detach(), noisy, atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_without_clipping_the_sum_is_the_plain_gradient(kind):
    data, module = made_up(KINDS[kind]), network(kind)
    samples = torch.tensor([2, 3, 6, 7, 10, 11])
    clipped, loss = clipped_sum(module, data.cohort, PART, samples, MOMENT, clip=1e9)
    plain, same = plain_sum(module, data.cohort, PART, samples, MOMENT)
    torch.testing.assert_close(loss, same)
    for name, each in plain.items():
        torch.testing.assert_close(clipped[name], each)


def test_a_step_that_draws_nobody_still_adds_noise():
    data = made_up()
    nobody = torch.zeros(0, dtype=torch.int64)
    settings = schedule(**PRIVACY, local_epochs=1)
    clients = clients_of(data, "mlp", settings)
    before = clients.start()
    loss = clients._step(0, 0, nobody, Moment(0, 0, 0), 4.0)
    assert float(loss) == 0
    assert clients.steps_taken[0, 0] == 1
    size = settings.learning_rate * clients.multipliers[0, 0] * settings.clip / 4
    for name, tensor in clients._shared(0).items():
        moved = (before[name][0] - tensor[0]) / size
        assert moved.abs().min() > 0
        assert moved.abs().max() < 6
    still = clients_of(data, "mlp", schedule())
    still._step(0, 0, nobody, Moment(0, 0, 0), 4.0)
    assert all(torch.equal(each, before[name]) for name, each in still._shared(0).items())


def test_noise_has_the_scale_that_is_asked_for():
    total = {"weight": torch.zeros(200, 300), "bias": torch.zeros(50_000)}
    add_noise(total, 2.5, STREAMS, 0, 0, MOMENT)
    for each in total.values():
        assert float(each.std()) == pytest.approx(2.5, rel=0.02)
        assert abs(float(each.mean())) < 0.05
    again = {"weight": torch.zeros(200, 300)}
    add_noise(again, 2.5, STREAMS, 0, 0, MOMENT)
    assert torch.equal(again["weight"], total["weight"])


def test_subjects_are_drawn_at_their_rate_and_independently_of_each_other():
    poisson = Poisson(4, Streams(1))
    training = torch.arange(30) % 3 != 0
    draws = np.zeros((4000, 30), dtype=bool)
    for step in range(len(draws)):
        draws[step, poisson.draw(0, 0, Moment(0, 0, step), training).numpy()] = True
    assert not draws[:, ~training.numpy()].any()
    kept = draws[:, training.numpy()]
    assert poisson.rate(20) == 0.2
    # Standard errors: 0.0063 of a rate; 0.16 * 20 / sqrt(8000) ~ 0.07 of the variance of a sum of 20, which is 3.2.
    np.testing.assert_allclose(kept.mean(axis=0), 0.2, atol=0.03)
    assert kept.sum(axis=1).var() == pytest.approx(20 * 0.2 * 0.8, abs=0.3)
    fewer = training.clone()
    fewer[1] = False
    # 19 subjects are drawn at a higher rate: who was drawn still is.
    first = {tuple(poisson.draw(0, 0, Moment(0, 0, step), fewer).tolist()) for step in range(3)}
    assert first != {tuple(poisson.draw(0, 1, Moment(0, 0, step), fewer).tolist()) for step in range(3)}


@pytest.mark.parametrize(
    ("batch", "subjects", "rate", "steps"),
    [(4, 20, 0.2, 5), (4, 21, 4 / 21, 6), (0, 20, 1, 1), (32, 20, 1, 1), (4, 0, 1, 0), (0, 0, 1, 0)],
)
def test_rate_and_steps_of_an_epoch(batch, subjects, rate, steps):
    poisson = Poisson(batch, STREAMS)
    assert poisson.rate(subjects) == pytest.approx(rate)
    assert poisson.steps(subjects) == steps


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_stays_on_its_device(kind):
    data, module = made_up(KINDS[kind]), network(kind).to("meta")
    samples = torch.tensor([2, 3, 6, 7])
    for found, loss in (
        clipped_sum(module, data.cohort, PART, samples, MOMENT, 1.0),
        plain_sum(module, data.cohort, PART, samples, MOMENT),
    ):
        add_noise(found, 1.0, STREAMS, 1, 0, MOMENT)
        apply(module, make_optimiser(module, schedule(optimiser="adam")), found, 4.0)
        assert loss.device == torch.device("meta")
    rows = data.cohort.rows(*PART, samples, None, next(module.parameters()))
    assert rows.of_subjects(module(*rows.arguments)).shape == (4, 2)


def test_one_window_a_subject_needs_no_means():
    data, like = made_up(3), next(network("convolution").parameters())
    samples = torch.tensor([2, 3, 7])
    assert data.cohort.rows(*PART, samples, Moment(0, 0, 0), like).means is None
    rows = data.cohort.rows(*PART, samples, Moment(0, 0, 1), like)
    assert rows.owner.tolist() == [0, 0, 0, 1, 2, 2]
    expected = torch.tensor([[1 / 3, 1 / 3, 1 / 3, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0.5, 0.5]])
    torch.testing.assert_close(rows.means, expected.double(), atol=1e-7, rtol=0)


def test_nobody_has_no_scores():
    data = made_up()
    assert probabilities(network("mlp"), data.cohort, PART, torch.zeros(0, dtype=torch.int64)).shape == (0, 2)
