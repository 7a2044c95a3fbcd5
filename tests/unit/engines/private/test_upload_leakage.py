"""A server that looks for one subject in an institution's uploads: found without noise, within epsilon with it."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from brainfed.engines.private import Moment, Poisson
from brainfed.engines.private import _training as engine
from brainfed.engines.private._cohort import add_noise
from brainfed.federation import PrivateSchedule, epsilon_spent
from brainfed.runtime import Streams

sys.path.insert(0, str(Path(__file__).parents[4] / "benchmarks"))
from canary import CANARIES, SUBJECT, WITHOUT, WORST, Absent, Planted, Server, log_ratio, uploads
from two_worlds import allowed_area, area, epsilon_bound, gaussian_area
from upload_leakage import COLUMNS, LOGISTIC, RATES, ST_GCN, cosine, institution, made_up, rows_of

DELTA, ROUNDS, TRIALS = 1e-3, 2, 120


def server_of(model=LOGISTIC, **options):
    given = {"privacy": "none", "epsilon": 2.0, "delta": DELTA, "rounds": ROUNDS, "batch": 0}
    schedule = PrivateSchedule(**(given | {"learning_rate": RATES[model]} | options))
    return Server.of(institution(model, *made_up(12, 8, 24), schedule))


def statistics(server, trials, canaries=CANARIES):
    """Canary -> log likelihood ratios of whole trainings without and with it, (trials,) each."""
    rounds = server.institution.schedule.rounds
    differences = torch.zeros(2, rounds, server.direction.numel(), dtype=torch.float64)
    found = {
        world: np.array(
            [server.trial(world, Streams(5, number * trials + at), differences)[0].sum(axis=0) for at in range(trials)]
        )
        for number, world in enumerate((WITHOUT, *canaries))
    }
    places = {world: CANARIES.index(world) for world in canaries}
    return {world: (found[WITHOUT][:, place], found[world][:, place]) for world, place in places.items()}


@pytest.mark.parametrize(("rate", "steps", "scale"), [(1.0, 1, 0.7), (0.4, 3, 0.7), (0.25, 1, 0.2)])
def test_the_ratio_is_that_of_two_gaussians(rate, steps, scale):
    random = np.random.default_rng(0)
    others, gradient = random.normal(size=(5, 7)), random.normal(size=7)
    total = random.normal(size=7)
    covariance = steps * (scale**2 * np.eye(7) + rate * (1 - rate) * others.T @ others)
    means = [steps * rate * (others.sum(axis=0) + with_it * gradient) for with_it in (0, 1)]
    logs = [multivariate_normal(mean, covariance).logpdf(total) for mean in means]
    found = log_ratio(*map(torch.from_numpy, (total, gradient, others)), rate, steps, scale)
    assert found == pytest.approx(logs[1] - logs[0], rel=1e-3)


@pytest.mark.parametrize("model", [LOGISTIC, ST_GCN])
def test_two_uploads_give_away_a_gradient_without_noise_and_clipping(model):
    assert cosine(server_of(model)) == pytest.approx(1, abs=1e-6)
    assert cosine(server_of(model, privacy="accountant")) < 0.7


@pytest.mark.parametrize("privacy", ["none", "accountant"])
def test_an_upload_is_the_sum_of_gradients_and_noise(privacy):
    server = server_of(privacy=privacy, rounds=1)
    own = server.institution
    upload = next(uploads(own.clients(SUBJECT, Streams(3), server.direction)))
    left = upload.total - own.gradients().double().sum(dim=0)
    if privacy == "none":
        assert float(left.norm()) < 1e-4
    else:
        assert float(left.std()) == pytest.approx(server.scale, rel=0.3)


def test_the_worst_case_has_one_gradient_at_any_weights():
    server = server_of(privacy="accountant", clip=0.5)
    own, direction = server.institution, server.direction
    assert float(direction.norm()) == pytest.approx(0.5)
    others = own.gradients()[own.others]
    assert float((others @ direction).abs().max()) < 1e-5
    for scale in (1.0, 30.0):
        module = Planted(own.network(), direction)
        with torch.no_grad():
            for each in module.parameters():
                each.mul_(scale)
        rows = own.cohort(WORST).rows(0, 0, torch.tensor([own.canary]), Moment(0, 0, 0), direction)
        loss = torch.nn.functional.cross_entropy(module(*rows.arguments), own.labels[[own.canary]])
        found = torch.cat([each.flatten() for each in torch.autograd.grad(loss, list(module.parameters()))])
        torch.testing.assert_close(found, direction * (1 if own.labels[own.canary] else -1))


def test_without_the_subject_all_others_are_drawn_as_before():
    training = torch.ones(9, dtype=torch.bool)
    with_it, without = Poisson(4, Streams(1)), Absent(4, Streams(1), 2)
    drawn = []
    for step in range(50):
        moment = Moment(0, 0, step)
        every = with_it.draw(0, 0, moment, training).tolist()
        drawn += every
        assert without.draw(0, 0, moment, training).tolist() == [each for each in every if each != 2]
    assert 2 in drawn


@pytest.mark.parametrize("model", [LOGISTIC, ST_GCN])
def test_without_noise_the_subject_is_found(model):
    for found in statistics(server_of(model), 6).values():
        assert area(*found)[0] == 1


@pytest.mark.full("A claim about many draws takes seconds.")
def test_without_noise_random_draws_do_not_hide_it():
    """Eight steps draw each subject with probability 1/2: one training in 256 never reads it."""
    for found in statistics(server_of(batch=6, rounds=4), 60).values():
        assert area(*found)[1] > 0.9
        assert epsilon_bound(*found, DELTA) > 1


@pytest.mark.full("A claim about many draws takes seconds.")
def test_at_epsilon_two_no_more_is_found_than_the_accountant_allows():
    server = server_of(privacy="accountant")
    assert epsilon_spent(server.multiplier, 1.0, ROUNDS, DELTA) <= 2
    for canary, found in statistics(server, TRIALS).items():
        auc, low, high = area(*found)
        assert epsilon_bound(*found, DELTA) <= 2
        assert low <= allowed_area(2.0, DELTA)
        if canary == WORST:
            assert low <= gaussian_area(ROUNDS**0.5 / server.multiplier) <= high
            assert auc > 0.55


@pytest.mark.full("Many hundred trainings show it.")
def test_too_little_noise_is_found_out(monkeypatch):
    """The audit can fail: an engine that adds a tenth of the noise has an epsilon above 2, and shows it."""
    monkeypatch.setattr(engine, "add_noise", lambda total, scale, *rest: add_noise(total, scale / 10, *rest))
    found = statistics(server_of(privacy="accountant"), TRIALS, (WORST,))
    assert epsilon_bound(*found[WORST], DELTA) > 2


def test_a_row_for_each_canary_and_number_of_rounds():
    rows = list(rows_of(LOGISTIC, server_of(privacy="accountant"), 4, 2))
    assert [row[1:4] for row in rows] == [(canary, "epsilon 2", str(count)) for canary in CANARIES for count in (1, 2)]
    assert {len(row) for row in rows} == {len(COLUMNS)}


def test_only_sums_are_judged():
    own = server_of().institution
    for options in ({"optimiser": "adam"}, {"momentum": 0.5}, {"weight_decay": 0.1}):
        with pytest.raises(ValueError, match="expected optimiser: sgd without momentum and weight decay"):
            replace(own, schedule=replace(own.schedule, **options))
