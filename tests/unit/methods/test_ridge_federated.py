"""Federated ridge gives the scores of ridge on pooled data, and sends sums alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from brainfed.engines.linear._design import LinearDesign
from brainfed.engines.linear._training import AveragingClients, KrylovClients
from brainfed.federation import Message
from brainfed.methods.fedtangent.declaration import FederatedRidgeSettings
from brainfed.methods.fedtangent.train import train_fedtangent, train_ridge_federated
from brainfed.methods.linear.declaration import RidgeSettings
from brainfed.methods.linear.train import train_ridge
from brainfed.runtime.jobs import Run
from brainfed.samples import View, fit_scaling, institution_folds
from support.samples.method_inputs import method_inputs

ALPHAS = (0.01, 0.1, 1.0, 10.0)
splits = pytest.mark.parametrize("split", ["random", "leave-one-site-out"])


def pooled(inputs, *, zscore=True, alphas=ALPHAS):
    standardise = "institution" if zscore else "none"
    return train_ridge(inputs, RidgeSettings("central", standardise, alphas, "inner_folds"), Run())


def with_views(inputs):
    """The columns as two views; every fifth subject lacks the second."""
    n, d = inputs.features[0].shape
    present = np.arange(n) % 5 != 0
    features = inputs.features[0].copy()
    features[~present, d // 2 :] = 0
    views = (
        View("one", slice(0, d // 2), 1.0, "all", "own", False, None, np.ones(n, dtype=bool)),
        View("two", slice(d // 2, d), 0.3, "site", "own", True, 1.5, present),
    )
    return replace(inputs, features=(features,), views=views)


@splits
@pytest.mark.parametrize("zscore", [True, False])
def test_scores_equal_those_of_ridge_on_pooled_data(split, zscore):
    inputs = method_inputs(75, 120, split=split)
    found = train_ridge_federated(inputs, FederatedRidgeSettings(ALPHAS, tolerance=1e-9, zscore=zscore), Run())
    expected = pooled(inputs, zscore=zscore)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-8)
    np.testing.assert_allclose(found.patterns, expected.patterns, atol=1e-6)


@splits
def test_scores_of_several_views_equal_those_of_pooled_data(split):
    inputs = with_views(method_inputs(75, 120, split=split))
    found = train_fedtangent(inputs, FederatedRidgeSettings(ALPHAS, tolerance=1e-9), Run())
    expected = pooled(inputs)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-8)
    np.testing.assert_allclose(found.patterns, expected.patterns, atol=1e-6)
    np.testing.assert_allclose(found.contributions, expected.contributions, atol=1e-6)


def test_the_tolerance_bounds_the_distance_to_the_pooled_scores():
    inputs = method_inputs(90, 300)
    exact = pooled(inputs).scores
    distances = []
    for bound in (1e-2, 1e-6):
        found = train_ridge_federated(inputs, FederatedRidgeSettings(ALPHAS, tolerance=bound), Run())
        distances.append(np.nanmax(np.abs(found.scores - exact)))
    assert distances[1] < 1e-5
    assert distances[0] < 1e-1


def test_scores_after_each_direction_approach_the_last_ones():
    inputs = method_inputs(90, 300)
    found = train_ridge_federated(inputs, FederatedRidgeSettings(ALPHAS), Run())
    distance = np.nanmax(np.abs(found.round_scores - found.scores), axis=(1, 2, 3))
    assert distance[0] > 1e-3
    assert distance[-1] == 0
    assert len(distance) == found.counts["rounds"]
    assert np.isfinite(found.training_loss).all()


@splits
def test_nothing_that_crosses_has_one_entry_a_subject(split):
    inputs = method_inputs(75, 120, split=split)
    rows = train_ridge_federated(inputs, FederatedRidgeSettings(ALPHAS), Run()).crossings
    assert not any("subjects" in str(row["axes"]).split(" x ") for row in rows)
    names = {row["name"] for row in rows}
    assert {"direction", "product", "last-coefficients"} <= names
    assert ("model" in names) == (split == "leave-one-site-out")


def only(inputs, code):
    """The same fold, in which all other institutions have no label."""
    labels = np.where(inputs.institution == code, inputs.labels, -1)
    return replace(inputs, labels=labels)


def test_the_summed_reply_is_the_sum_of_what_each_institution_computes_from_its_own_subjects():
    inputs = method_inputs(75, 40)
    scaling = fit_scaling(inputs, 0, inputs.training(0), standardise=True)
    members = np.arange(len(inputs.institutions))[:, None] == inputs.institution

    def replies(cohort):
        design = LinearDesign.of(cohort, 0, scaling, inner=True, device=torch.device("cpu"))
        clients = KrylovClients(design, 3, members)
        first = clients.fit(0, clients.institutions)[0].tensors
        direction = torch.linspace(-1, 1, 6 * 40, dtype=torch.float64).reshape(1, 6, 40)
        clients.receive({0: Message({"direction": direction})})
        return {**first, **clients.fit(1, clients.institutions)[0].tensors}

    together, alone = replies(inputs), [replies(only(inputs, code)) for code in range(3)]
    for name, tensor in together.items():
        torch.testing.assert_close(tensor, sum(each[name] for each in alone), msg=name)


def test_a_class_with_one_subject_an_institution_leaves_inner_folds_to_all_others():
    inputs = method_inputs(75, 120)
    rare = np.where(inputs.labels == 1, np.where(np.arange(75) < 9, 1, 0), inputs.labels)
    found = institution_folds(replace(inputs, labels=rare), 0)
    trained = inputs.training(0)
    assert set(found[~trained]) == {-1}
    for code in range(3):
        counts = np.bincount(found[trained & (inputs.institution == code)], minlength=5)
        assert counts.max() - counts.min() <= 1


def test_a_single_penalty_needs_no_search():
    rows = train_ridge_federated(method_inputs(75, 120), FederatedRidgeSettings((1.0,)), Run()).crossings
    assert {row["name"] for row in rows}.isdisjoint({"direction", "product", "loss", "coefficients"})


def averaged_plainly(inputs, fold, alpha, rounds, steps):
    """(n,) scores of class 1 by FedAvg with gradient steps, one institution and step after the other."""
    training = inputs.training(fold)
    features = fit_scaling(inputs, fold, training, standardise=True).of_subjects(inputs, fold)
    targets, count = 2.0 * inputs.labels[fold] - 1, training.sum()
    level = targets[training].mean()
    groups = [np.flatnonzero(training & (inputs.institution == code)) for code in range(len(inputs.institutions))]
    groups = [rows for rows in groups if len(rows)]
    curvature = max(np.linalg.norm(features[rows], 2) ** 2 / len(rows) for rows in groups)
    mean = np.zeros(features.shape[1])
    for _ in range(rounds):
        replies = []
        for rows in groups:
            weights = mean.copy()
            for _ in range(steps):
                error = features[rows] @ weights + level - targets[rows]
                gradient = features[rows].T @ error / len(rows) + alpha / count * weights
                weights -= gradient / (curvature + alpha / count)
            replies.append(len(rows) / count * weights)
        mean = np.sum(replies, axis=0)
    return features @ mean + level


@splits
def test_averaging_is_gradient_descent_at_home_and_a_weighted_mean(split):
    inputs = method_inputs(75, 120, split=split)
    settings = FederatedRidgeSettings((0.5,), "fedavg", rounds=4, local_steps=3)
    found = train_ridge_federated(inputs, settings, Run()).scores
    for fold in range(inputs.folds):
        tested = inputs.tested(fold)
        expected = averaged_plainly(inputs, fold, 0.5, 4, 3)[tested]
        np.testing.assert_allclose(found[fold, tested, 1], expected, atol=1e-9)


def test_a_penalty_counts_by_the_training_subjects_of_its_system():
    """With an inner fold left out there are fewer of them."""
    inputs, alphas = method_inputs(68, 12), (0.5, 40.0)
    scaling = fit_scaling(inputs, 0, inputs.training(0), standardise=True)
    design = LinearDesign.of(inputs, 0, scaling, inner=True, device=torch.device("cpu"))
    members = np.arange(len(inputs.institutions))[:, None] == inputs.institution
    clients = AveragingClients(design, alphas, 1, 1, members)
    found = clients.fit(0, clients.institutions)[1].tensors["weights"].numpy()[0]
    features, training = design.features.numpy(), design.training.numpy() > 0
    rows = [np.flatnonzero(training[0] & own) for own in members]
    curvature = max(np.linalg.norm(features[own], 2) ** 2 / len(own) for own in rows)
    for system, mask in enumerate(training):
        own = np.flatnonzero(mask & members[1])
        targets = design.targets[system].numpy()
        gradient = features[own].T @ (targets[mask].mean() - targets[own]) / len(own)
        for place, alpha in enumerate(alphas):
            np.testing.assert_allclose(found[system, place], -gradient / (curvature + alpha / mask.sum()), atol=1e-12)
    assert len(set(training.sum(axis=1).tolist())) > 1


def test_averaging_over_one_institution_ends_at_the_ridge_solution():
    inputs = method_inputs(60, 90, institutions=1)
    settings = FederatedRidgeSettings((0.5, 5.0), "fedavg", rounds=200, local_steps=60)
    found = train_ridge_federated(inputs, settings, Run())
    expected = pooled(inputs, alphas=(0.5, 5.0))
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-4)
    np.testing.assert_allclose(found.patterns, expected.patterns, atol=1e-3)


@pytest.mark.parametrize(
    "after", [1, 30, *(pytest.param(after, marks=pytest.mark.full("Two others are tried.")) for after in (7, 60))]
)
@pytest.mark.parametrize("solver", ["conjugate_gradient", "fedavg"])
def test_an_interrupted_training_goes_on_to_the_same_bytes(resumed, solver, after):
    inputs = method_inputs(45, 40)
    settings = FederatedRidgeSettings(ALPHAS, solver, rounds=30)
    whole = train_ridge_federated(inputs, settings, Run())
    again, _ = resumed(lambda run: train_ridge_federated(inputs, settings, run), after)
    assert again.scores.tobytes() == whole.scores.tobytes()
    assert again.round_scores.tobytes() == whole.round_scores.tobytes()
    assert again.crossings == whole.crossings
