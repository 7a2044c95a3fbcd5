"""The choice of weight decay and rounds reads held-out training subjects, and no test subject."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import log_loss

from brainfed.engines.stacked._training import chosen_candidates, held_out_losses, inner_inputs
from brainfed.methods import FederatedClassifierSettings, SoloSettings
from brainfed.methods.gcn.declaration import FEDGCN, FedGCNSettings
from brainfed.methods.gcn.train import train_centralgcn, train_fedgcn, train_localgcn
from brainfed.methods.mlp.train import train_fedmlp
from brainfed.runtime import UserError
from brainfed.runtime.jobs import Run
from brainfed.samples import Outcome
from support.samples.method_inputs import diagnosis_of, method_inputs, scrambled

DECAYS = (0.0, 0.1, 3.0)
SHORT = {"hidden": (8, 4), "learning_rate": 0.02, "choose": "inner", "weight_decays": DECAYS}
ROUNDS = {"rounds": 4, "local_epochs": 4, "noise": 0.0}
EPOCHS = {"epochs": 16, "curve_every": 4}
CASES = {
    "fedgcn": (train_fedgcn, FedGCNSettings(**SHORT, **ROUNDS)),
    "fedmlp": (train_fedmlp, FederatedClassifierSettings(**SHORT, **ROUNDS)),
    "localgcn": (train_localgcn, SoloSettings(**SHORT, **EPOCHS)),
    "centralgcn": (train_centralgcn, SoloSettings(**SHORT, **EPOCHS)),
}


ONE_ENGINE = pytest.mark.full("`fedgcn` is scored where a site is left out by the same engine.")


@pytest.mark.parametrize(
    ("name", "split"),
    [
        *((name, "random") for name in CASES),
        ("fedgcn", "leave-one-site-out"),
        *(pytest.param(name, "leave-one-site-out", marks=ONE_ENGINE) for name in CASES if name != "fedgcn"),
    ],
)
def test_labels_of_tested_subjects_reach_no_prediction_of_their_fold(name, split):
    train, settings = CASES[name]
    inputs = method_inputs(48, 12, folds=3, split=split)
    before = train(inputs, settings, Run()).scores
    for fold in range(inputs.folds):
        after, other = train(scrambled(inputs, fold), settings, Run()).scores, (fold + 1) % inputs.folds
        assert after[fold].tobytes() == before[fold].tobytes()
        assert after[other].tobytes() != before[other].tobytes()


def test_it_is_the_choice_of_single_trainings():
    inputs = method_inputs(90, 40, folds=4, effect=0.7)
    settings = FederatedClassifierSettings(**SHORT, **ROUNDS)
    plain = replace(settings, choose="none")
    inner, truth, chosen = inner_inputs(inputs), diagnosis_of(inputs), []
    tried = [train_fedmlp(inner, replace(plain, weight_decay=decay), Run()).round_scores for decay in DECAYS]
    found = train_fedmlp(inputs, settings, Run())
    for fold in range(inputs.folds):
        held_out = [(inputs.fold == (fold + 1) % inputs.folds) & (inputs.institution == code) for code in range(3)]
        losses = {
            (decay, number): np.mean([log_loss(truth[own], scores[number, fold, own, 1]) for own in held_out])
            for decay, scores in zip(DECAYS, tried, strict=True)
            for number in range(4)
        }
        decay, number = min(losses, key=losses.get)
        chosen.append((decay, number))
        again = train_fedmlp(inputs, replace(plain, weight_decay=decay, rounds=number + 1), Run())
        assert found.scores[fold].tobytes() == again.scores[fold].tobytes()
        # The model of these rounds is the one that an audit of membership asks.
        assert found.member_scores[fold].tobytes() == again.member_scores[fold].tobytes()
    assert len(set(chosen)) > 1


def test_a_held_out_loss_is_a_mean_whatever_the_number_of_people():
    inputs = method_inputs(60, 12)
    even = np.full((2, *inputs.labels.shape, 2), 0.5)
    assert held_out_losses(inputs, Outcome(even[-1], "probability", even)) == pytest.approx(np.log(2))


def test_one_candidate_and_one_round_change_nothing():
    inputs = method_inputs(60, 12)
    settings = FederatedClassifierSettings(**{**SHORT, "weight_decays": (0.0,)}, **{**ROUNDS, "rounds": 1})
    plain = train_fedmlp(inputs, replace(settings, choose="none"), Run())
    assert train_fedmlp(inputs, settings, Run()).scores.tobytes() == plain.scores.tobytes()


def test_an_institution_alone_chooses_for_itself():
    losses = np.array([[[[1.0], [3.0], [np.nan]]], [[[2.0], [1.0], [np.nan]]]])
    assert chosen_candidates(losses, alone=True)[0, :, 0].tolist() == [0, 1, 0]
    assert chosen_candidates(losses, alone=False)[0, :, 0].tolist() == [1, 1, 1]


def test_mean_losses_cross_and_inner_trainings_count():
    inputs = method_inputs(60, 12)
    plain = train_fedgcn(inputs, FedGCNSettings(hidden=(8, 4), **ROUNDS), Run()).crossings
    rows = {(row["name"], row["direction"]): row for row in train_fedgcn(inputs, CASES["fedgcn"][1], Run()).crossings}
    assert {name for name, _ in rows} <= set(FEDGCN.crossing.tensors)
    assert rows["validation-loss", "upload"]["shape"] == "3x4"
    assert rows["validation-loss", "upload"]["tensors"] == 3
    for row in plain:
        assert rows[row["name"], row["direction"]]["bytes"] == 4 * row["bytes"]


def test_two_sites_to_leave_out_are_refused():
    inputs = method_inputs(60, 12, institutions=2, split="leave-one-site-out")
    with pytest.raises(UserError, match="choose: inner needs at least 3 sites to leave out, found 2"):
        train_fedmlp(inputs, CASES["fedmlp"][1], Run())
