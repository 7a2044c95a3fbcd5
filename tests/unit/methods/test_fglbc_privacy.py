"""FGLBC's privacy: what every institution spends, the server's weights, resumed trainings, settings that do not fit."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from brainfed.configuration import validate
from brainfed.federation import epsilon_spent
from brainfed.methods.fglbc.declaration import (
    FGLBC,
    QUICK_STGCN,
    FederatedRegionGNNSettings,
    FGLBCSettings,
    SoloSTGCNSettings,
)
from brainfed.methods.fglbc.train import SeriesTraining
from brainfed.runtime import UserError, canonical_json
from brainfed.runtime.jobs import Checkpoint, Run
from brainfed.samples import check, history_table
from support.samples.method_inputs import diagnosis_of
from unit.methods.test_fglbc import CENTRAL, LOCAL, PLAIN, PRIVATE, both_splits, cohort, outcome_of

ROUNDS = 3
TRAINED = {"local_epochs": 2, "steps": ROUNDS}


ONE_ENGINE = pytest.mark.full("Other methods of this engine are tried at every change.")


@pytest.mark.parametrize(
    ("name", "split"),
    [
        *((name, "random") for name in PRIVATE),
        ("fglbc", "leave-one-site-out"),
        *(pytest.param(name, "leave-one-site-out", marks=ONE_ENGINE) for name in PRIVATE if name != "fglbc"),
    ],
)
def test_every_institution_has_a_row_of_what_it_spent_in_each_fold(name, split):
    inputs = cohort(split=split)
    outcome = outcome_of(name, inputs, epsilon=1.0, **TRAINED)
    check(inputs, outcome)
    trained = {
        (inputs.institutions[place], fold): int((inputs.training(fold) & (inputs.institution == place)).sum())
        for place in range(3)
        for fold in range(inputs.folds)
    }
    rows = {(row["institution"], row["fold"]): row for row in outcome.privacy}
    assert len(rows) == len(outcome.privacy) and rows.keys() == {key for key, count in trained.items() if count}
    for key, row in rows.items():
        count = trained[key]
        assert (row["unit"], row["subjects"], row["sampling_rate"]) == ("subject", count, min(8 / count, 1))
        assert row["steps"] == ROUNDS * 2 * -(-count // 8)
        spent = epsilon_spent(row["noise_multiplier"], row["sampling_rate"], row["steps"], row["delta"])
        assert row["epsilon_spent"] == spent
        assert (spent > row["epsilon_planned"]) == (row["privacy"] == "paper") == (name == "fglbc-printed-noise")
        assert row["epsilon_planned"] == 1
    assert json.loads(canonical_json(list(outcome.privacy))) == list(outcome.privacy)


@pytest.mark.parametrize("name", [*LOCAL, *CENTRAL, *PLAIN])
def test_without_noise_nothing_is_promised(name):
    assert outcome_of(name, cohort()).privacy == ()


def test_a_smaller_budget_takes_more_noise_and_is_spent():
    inputs, budgets = cohort(), (0.5, 5.0, 50.0)
    found = [outcome_of("fglbc", inputs, epsilon=epsilon, **TRAINED) for epsilon in budgets]
    multipliers = [outcome.privacy[0]["noise_multiplier"] for outcome in found]
    assert multipliers == sorted(multipliers, reverse=True)
    for epsilon, outcome in zip(budgets, found, strict=True):
        assert 0.9 * epsilon < outcome.privacy[0]["epsilon_spent"] <= epsilon
    assert len({outcome.scores.tobytes() for outcome in found}) == len(budgets)


@pytest.mark.parametrize("aggregation", ["similarity", "printed"])
@both_splits
def test_the_servers_weights_sum_to_one_and_start_equal(aggregation, split):
    inputs = cohort(split=split)
    outcome = outcome_of("fglbc-no-dp", inputs, aggregation=aggregation, **TRAINED)
    shares = outcome.shares
    assert shares.shape == (ROUNDS, inputs.folds, 3)
    np.testing.assert_allclose(shares.sum(axis=2), 1)
    for fold in range(inputs.folds):
        trains = np.bincount(inputs.institution[inputs.training(fold)], minlength=3) > 0
        assert (shares[:, fold, ~trains] == 0).all()
        if aggregation == "similarity":
            np.testing.assert_allclose(shares[0, fold, trains], 1 / trains.sum())
            assert np.ptp(shares[-1, fold, trains]) > 0.01
    written = history_table(inputs, outcome, diagnosis_of(inputs))["weight"].to_numpy()
    np.testing.assert_array_equal(written, shares.transpose(1, 2, 0).ravel())
    assert outcome_of("fedavg-no-dp", inputs).shares is None


def test_equal_weights_at_temperature_0_are_fedavg():
    inputs = cohort()
    found, plain = outcome_of("fglbc-no-dp", inputs, temperature=0.0), outcome_of("fedavg-no-dp", inputs)
    np.testing.assert_allclose(found.scores, plain.scores, rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "stopped"),
    [
        *(("fglbc", 1), ("fglbc", 3), ("fedgnn-dp", 2), ("stgcn-local", 2)),
        *(pytest.param(name, stopped, marks=ONE_ENGINE) for name in ("fedgnn-dp", "stgcn-local") for stopped in (1, 3)),
        pytest.param("fglbc", 2, marks=ONE_ENGINE),
    ],
)
def test_a_stopped_training_resumes_to_the_same_bytes_and_spends_nothing_twice(name, stopped, resumed):
    """It stops after a round and before that round is kept: the round is trained again, with the same noise."""
    inputs = cohort()
    settings = {"steps": ROUNDS} if name in LOCAL else TRAINED
    whole = outcome_of(name, inputs, **settings)
    again, seen = resumed(lambda run: outcome_of(name, inputs, run, **settings), stopped)
    assert seen == list(range(stopped, ROUNDS + 1))
    for field in ("round_scores", "training_loss", "member_scores", *(() if name != "fglbc" else ("shares",))):
        assert getattr(again, field).tobytes() == getattr(whole, field).tobytes(), field
    assert again.crossings == whole.crossings
    assert again.privacy == whole.privacy
    for row in again.privacy:
        assert row["steps"] == ROUNDS * 2 * -(-row["subjects"] // 8)


def test_a_training_that_is_read_again_when_it_is_whole_spends_nothing_more(tmp_path):
    inputs, run = cohort(), Run(checkpoint=Checkpoint(tmp_path / ".job.checkpoint", "key"))
    first, second = (outcome_of("fglbc", inputs, run, **TRAINED) for _ in range(2))
    assert second.privacy == first.privacy
    assert second.scores.tobytes() == first.scores.tobytes()


@pytest.mark.parametrize(
    ("settings", "content", "words"),
    [
        (FGLBCSettings, {"epsilon": 0}, r"epsilon: expected a number above 0, found 0; privacy: none spends none"),
        (FGLBCSettings, {"epsilon": -2}, r"epsilon: expected at least 0, found -2"),
        (FederatedRegionGNNSettings, {"delta": 1}, r"delta: expected a number from 1e-12 to below 1, found 1"),
        (FGLBCSettings, {"clip": 0}, r"clip: expected a norm above 0, found 0"),
        (FGLBCSettings, {"kernel": 4}, r"kernel: expected an odd number of time points, found 4; 5 is one"),
        (SoloSTGCNSettings, {"kernel": 4}, r"kernel: expected an odd number of time points, found 4"),
        (FGLBCSettings, {"strides": []}, r"strides: expected one whole number .* of 1 to 8 blocks, found \[\]"),
        (SoloSTGCNSettings, {"strides": [2, 0]}, r"strides: expected one whole number .*, found \[2, 0\]"),
        (FGLBCSettings, {"strides": [1] * 9}, r"strides: expected one whole number"),
        (FGLBCSettings, {"groups": 3}, r"groups: expected a number that divides channels: 64, found 3; 1 always does"),
        (FederatedRegionGNNSettings, {"hidden": 5}, r"groups: expected a number that divides hidden: 5, found 2"),
        (SoloSTGCNSettings, {"channels": 7}, r"groups: expected a number that divides channels: 7, found 2"),
        (FGLBCSettings, {"window": 1}, r"window: expected at least 2, found 1"),
        (FGLBCSettings, {"temperature": -1}, r"temperature: expected at least 0, found -1"),
        (FGLBCSettings, {"privacy": "gaussian"}, r"privacy: expected one of .*, found 'gaussian'"),
        (FGLBCSettings, {"adjacency": "cohort_mean"}, r"adjacency: expected subject under privacy: accountant"),
        (
            FederatedRegionGNNSettings,
            {"adjacency": "cohort_mean", "privacy": "paper"},
            r"adjacency: .*; set privacy: none",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_setting_that_does_not_fit_gets_a_sentence(settings, content, words):
    with pytest.raises(UserError, match=rf"variants\.ours: {words}") as found:
        validate(settings, content, "variants.ours")
    assert "\n" not in str(found.value)


def test_a_large_delta_names_the_institution():
    with pytest.raises(UserError, match=r"delta of institution site-0: expected less than 1 / 4 .*lower delta"):
        outcome_of("fglbc", cohort(), delta=0.3)


def test_a_budget_that_no_noise_keeps_gets_a_sentence():
    with pytest.raises(UserError, match=r"epsilon: expected a budget that 6 steps can keep .*raise epsilon"):
        outcome_of("fglbc", cohort(), epsilon=1e-7, delta=1e-9, local_epochs=2, steps=3)


def test_a_single_training_subject_is_refused_under_noise_and_trained_without():
    inputs = cohort()
    labels = inputs.labels.copy()
    for place in range(3):
        for fold in range(2):
            labels[fold, np.flatnonzero(inputs.training(fold) & (inputs.institution == place))[1:]] = -1
    few = replace(inputs, labels=labels)
    assert [int(few.training(0)[few.members(place)].sum()) for place in range(3)] == [1, 1, 1]
    with pytest.raises(UserError, match=r"privacy of institution site-0: expected two or more .*found 1, .*join inst"):
        outcome_of("fglbc", few, **TRAINED)
    check(few, outcome_of("fglbc-no-dp", few, **TRAINED))


@pytest.mark.parametrize("privacy", ["none", "paper"])
def test_a_round_stays_on_its_device(privacy):
    """On torch's `meta` device a tensor that is elsewhere stops the step."""
    settings = FGLBCSettings(**QUICK_STGCN, privacy=privacy, rounds=1, batch=8)
    run, tensors = Run(device="meta"), FGLBC.crossing.tensors
    training = SeriesTraining(cohort(), settings.schedule(), run, "federated", tensors, settings=settings)
    windows = training.cohort()
    network = training.network(0, 0).to("meta")
    like = next(network.parameters())
    for moment in (None, (0, 0, 0)):
        rows = windows.rows(0, 0, torch.arange(5), moment, like)
        assert network(*rows.arguments).device == torch.device("meta")
        assert {each.device.type for each in rows.arguments} == {"meta"}


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*LOCAL, *CENTRAL, *PLAIN, "fglbc-printed-noise"])
def test_a_gpu_gives_the_cpus_scores(name):
    if not torch.cuda.is_available():
        pytest.skip("no GPU on this machine")
    inputs = cohort()
    cpu, gpu = outcome_of(name, inputs), outcome_of(name, inputs, Run(device="cuda:0"))
    np.testing.assert_allclose(gpu.scores[..., 1], cpu.scores[..., 1], atol=1e-3, equal_nan=True)
    assert gpu.privacy == cpu.privacy and gpu.counts == cpu.counts
