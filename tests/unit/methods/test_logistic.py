"""Federated logistic regression by sums of gradients, and its fits: the pooled model, whatever the features."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from brainfed.federation import Ledger, Pace
from brainfed.methods.linear import train
from brainfed.methods.linear._dual import Fits, training_span
from brainfed.methods.linear.declaration import LogisticSettings
from brainfed.methods.linear.train import TrainingSet, fit_logistic
from brainfed.methods.logistic_federated import train as federated
from brainfed.methods.logistic_federated.declaration import LOGISTIC_FEDERATED, FederatedLogisticSettings
from brainfed.methods.logistic_federated.rows import MARGIN_SUMS, designs, haufe_patterns, margin_sums
from brainfed.methods.logistic_federated.train import LogisticClients
from brainfed.runtime.jobs import Checkpoint, Run
from brainfed.samples import MethodInputs, inner_folds
from support.samples.method_inputs import diagnosis_of, method_inputs, relabelled

DOUBLE = Run(precision="float64")


def with_common_signal(inputs: MethodInputs, strength: float) -> MethodInputs:
    """The same cohort with one number a subject added to all of its features, unrelated to the diagnosis."""
    shared = np.random.default_rng(9).standard_normal((len(inputs.subjects), 1))
    return replace(inputs, features=((inputs.features[0] + strength * shared).astype(np.float32),))


def auc_of(outcome, inputs):
    truth, scores = diagnosis_of(inputs), outcome.scores[..., 1]
    return np.mean([roc_auc_score(truth[mask], scores[fold, mask]) for fold, mask in enumerate(masks_of(inputs))])


def masks_of(inputs):
    return [inputs.tested(fold) for fold in range(inputs.folds)]


@pytest.mark.parametrize("cost", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("strength", [0.0, 3.0])
def test_it_equals_the_pooled_model(cost, strength):
    inputs = with_common_signal(method_inputs(60, 100, folds=2, effect=0.4), strength)
    settings = FederatedLogisticSettings(costs=(cost,), standardise="none", tolerance=1e-9, max_rounds=5000)
    found = federated.train(inputs, settings, DOUBLE).scores
    expected = train.train_logistic(inputs, LogisticSettings(costs=(cost,), standardise="none"), DOUBLE).scores
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_it_minimises_the_loss_of_its_formula():
    inputs = method_inputs(40, 6, effect=0.5, institutions=2)
    found = federated.train(inputs, FederatedLogisticSettings(costs=(0.3,), tolerance=1e-10), DOUBLE).scores[0, :, 1]
    rows = np.zeros((40, 6))
    for code in range(2):
        own = inputs.institution == code
        training = inputs.features[0][own & inputs.training(0)].astype(np.float64)
        rows[own] = (inputs.features[0][own] - training.mean(axis=0)) / training.std(axis=0)
    training, labels = inputs.training(0), inputs.labels[0]
    rows /= np.sqrt((rows[training] ** 2).sum(axis=1).mean())

    def loss(model):
        margins = (1 - 2 * labels[training]) * (rows[training] @ model[:-1] + model[-1])
        return np.logaddexp(0, margins).sum() + (model[:-1] ** 2).sum() / (2 * 0.3)

    model = minimize(loss, np.zeros(7), method="BFGS", options={"gtol": 1e-9}).x
    expected = expit(rows @ model[:-1] + model[-1])[inputs.tested(0)]
    np.testing.assert_allclose(found[inputs.tested(0)], expected, atol=1e-6)


def test_the_penalty_of_inner_folds_is_that_of_the_whole_grid():
    inputs = method_inputs(120, 300, effect=0.0)
    grid = (0.01, 0.1, 1.0, 10.0, 100.0)
    chosen = federated.train(inputs, FederatedLogisticSettings(costs=grid), Run()).scores
    single = [federated.train(inputs, FederatedLogisticSettings(costs=(cost,)), Run()).scores for cost in grid]
    for fold, mask in enumerate(masks_of(inputs)):
        distances = [np.abs(chosen[fold, mask] - scores[fold, mask]).max() for scores in single]
        assert min(distances) < 1e-9
        # In noise only subjects that a model has learnt ask for the weakest penalty.
        assert np.argmin(distances) < len(grid) - 1


@pytest.mark.full("Hundreds of rounds.")
def test_a_common_signal_costs_nothing_where_averaged_steps_of_adam_fail():
    losses = {"fedavg": [], "lbfgs": []}
    for seed in range(3):
        inputs = with_common_signal(method_inputs(150, 1000, effect=0.4, institutions=5, seed=seed), 1.5)
        best = auc_of(train.train_logistic(inputs, LogisticSettings(), Run()), inputs)
        for solver, found in losses.items():
            outcome = federated.train(inputs, FederatedLogisticSettings(solver=solver), Run())
            found.append(best - auc_of(outcome, inputs))
    assert np.mean(losses["lbfgs"]) < 0.02
    assert np.mean(losses["fedavg"]) > 0.08


def test_classes_are_fitted_against_the_rest():
    plain = method_inputs(90, 40, effect=1.0)
    truth = (np.arange(90) // 3) % 3
    features = plain.features[0].copy()
    features[np.arange(90), truth] += 3
    labels = np.where(plain.labels < 0, -1, truth)
    inputs = replace(plain, features=(features,), labels=labels, classes=3)
    outcome = federated.train(inputs, FederatedLogisticSettings(), Run())
    tested = inputs.fold, np.arange(90)
    np.testing.assert_allclose(outcome.scores[tested].sum(axis=1), 1)
    assert (outcome.scores[tested].argmax(axis=1) == truth).mean() > 0.7


def test_gradients_cross_and_no_subject_does():
    inputs = method_inputs(60, 30, institutions=3, split="leave-one-site-out")
    outcome = federated.train(inputs, FederatedLogisticSettings(), Run())
    rows = {(row["name"], row["direction"]): row for row in outcome.crossings}
    assert {name for name, _ in rows} <= set(LOGISTIC_FEDERATED.crossing.tensors)
    assert not any("subjects" in str(row["axes"]) for row in outcome.crossings)
    assert rows["weight-gradient", "upload"]["institutions"] == "1 2"
    assert rows["weight-gradient", "upload"]["tensors"] == 2 * rows["weight-gradient", "upload"]["rounds"]
    assert rows["feature-mean", "upload"]["institutions"] == "1 2"
    assert rows["feature-mean", "download"]["institutions"] == "0 1 2"
    assert rows["inner-validation-loss", "upload"]["shape"] == "5"


def test_a_fold_of_one_class_has_a_finite_score():
    plain = method_inputs(40, 10)
    inputs = replace(plain, labels=np.where(plain.labels < 0, -1, 1))
    scores = federated.train(inputs, FederatedLogisticSettings(max_rounds=50), Run()).scores[..., 1]
    assert (scores[inputs.fold, np.arange(40)] > 0.9).all()


def test_a_stopped_training_resumes_to_the_same_bits(tmp_path, monkeypatch):
    inputs = method_inputs(45, 12, folds=3)
    whole = federated.train(inputs, FederatedLogisticSettings(), Run())

    class StoppedError(Exception):
        pass

    fit, seen = LogisticClients.fit, []

    def fails_once(clients, number, chosen):
        seen.append(number)
        if len(seen) == 40:
            raise StoppedError
        return fit(clients, number, chosen)

    monkeypatch.setattr(LogisticClients, "fit", fails_once)
    monkeypatch.setattr(Pace, "due", lambda pace: True)
    run = Run(checkpoint=Checkpoint(tmp_path / ".job.checkpoint", "key"))
    with pytest.raises(StoppedError):
        federated.train(inputs, FederatedLogisticSettings(), run)
    before = len(seen)
    again = federated.train(inputs, FederatedLogisticSettings(), run)
    assert again.scores.tobytes() == whole.scores.tobytes()
    assert again.patterns.tobytes() == whole.patterns.tobytes()
    assert again.crossings == whole.crossings
    assert seen[before] > 0


def test_without_scaling_the_pattern_is_that_of_the_pooled_model():
    inputs = method_inputs(90, 40, effect=0.4)
    settings = FederatedLogisticSettings(costs=(0.3,), standardise="none", tolerance=1e-9, max_rounds=5000)
    found = federated.train(inputs, settings, DOUBLE).patterns
    expected = train.train_logistic(inputs, LogisticSettings(costs=(0.3,), standardise="none"), DOUBLE).patterns
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_the_pattern_is_haufe_s_of_features_that_are_centred_at_home():
    inputs = method_inputs(60, 8, effect=0.5)
    features = inputs.features[0].copy()
    features[:, 3] = 0.7
    inputs = replace(inputs, features=(features,))
    made = designs(
        inputs, 1, "institution", DOUBLE, Ledger(LOGISTIC_FEDERATED.crossing.tensors, {"features": 8, "models": 1})
    )
    weight = torch.from_numpy(np.random.default_rng(4).standard_normal((1, 8)))
    parts = zip(*(margin_sums(design, weight) for design in made), strict=True)
    sums = {name: torch.stack(each).sum(dim=0).numpy() for name, each in zip(MARGIN_SUMS, parts, strict=True)}
    sums |= {"training-subjects": np.array(inputs.training(1).sum()), "class-counts": np.ones(1)}
    found = haufe_patterns(sums)
    centred, margins = [], []
    for design in made:
        own = features[design.nodes[design.training]].astype(float)
        centred.append(own - own.mean(axis=0))
        margins.append(design.rows[torch.from_numpy(design.training)].numpy() @ weight[0].numpy())
    score = np.concatenate(margins)
    expected = (score - score.mean()) @ np.concatenate(centred) / (len(score) * score.std())
    np.testing.assert_allclose(found[0], expected, rtol=1e-6, atol=1e-9)
    assert found[0, 3] == 0


@pytest.mark.parametrize("standardise", ["institution", "none"])
def test_a_class_that_nobody_or_everybody_has_in_training_has_no_pattern(standardise):
    inputs = method_inputs(90, 20, institutions=3, split="leave-one-site-out")
    diagnosis = np.where(inputs.institution == 2, 2, np.arange(90) // 3 % 2)
    three = replace(relabelled(inputs, diagnosis), classes=3)
    found = federated.train(three, FederatedLogisticSettings(standardise=standardise), Run()).patterns
    assert not found[2, 2].any()
    assert np.abs(found[:2]).max(axis=2).min() > 0.05
    one = relabelled(inputs, np.zeros(90, dtype=np.int64))
    assert not federated.train(one, FederatedLogisticSettings(standardise=standardise), Run()).patterns.any()


def test_patterns_of_three_classes_are_those_of_the_pooled_models():
    inputs = method_inputs(90, 12, effect=0.0)
    three = replace(relabelled(inputs, np.random.default_rng(3).permutation(np.arange(90) % 3)), classes=3)
    settings = FederatedLogisticSettings(costs=(0.3,), standardise="none", tolerance=1e-9, max_rounds=5000)
    found = federated.train(three, settings, DOUBLE).patterns
    expected = train.train_logistic(three, LogisticSettings(costs=(0.3,), standardise="none"), DOUBLE).patterns
    assert found.shape == (3, 3, 12)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_identical_subjects_have_no_pattern():
    inputs = method_inputs(30, 4)
    alike = replace(inputs, features=(np.ones((30, 4), dtype=np.float32),))
    assert not federated.train(alike, FederatedLogisticSettings(), Run()).patterns.any()


COSTS = LogisticSettings().costs


def subjects(count: int, columns: int, effect: float, decay: float):
    """A span of subjects whose features share a spectrum, and their labels."""
    random = np.random.default_rng(7)
    labels = (np.arange(count) % 3 == 0).astype(np.int64)
    latent = random.standard_normal((count, count)) * np.arange(1, count + 1.0) ** -decay
    latent[:, 1] += effect * labels
    features = (latent @ random.standard_normal((count, columns))).astype(np.float32)
    return training_span(features, np.ones(count, dtype=bool), "institution"), labels


@pytest.mark.parametrize("decay", [0.0, 0.9])
@pytest.mark.parametrize("effect", [0.0, 0.5, 20.0])
@pytest.mark.parametrize(("count", "columns"), [(60, 20), (60, 400)])
def test_margins_are_those_of_newtons_method(count, columns, effect, decay):
    span, labels = subjects(count, columns, effect, decay)
    coordinates, _ = span.coordinates()
    kept = np.random.default_rng(3).random((count, len(COSTS))) < 0.7
    found = Fits(coordinates, labels, kept, np.array(COSTS)).margins()
    for place, cost in enumerate(COSTS):
        own = kept[:, place]
        expected = LogisticRegression(C=cost, solver="newton-cholesky", tol=1e-12, max_iter=500)
        expected.fit(coordinates[own], labels[own])
        np.testing.assert_allclose(found[:, place], expected.decision_function(coordinates), rtol=1e-6, atol=1e-6)


def test_a_fit_does_not_depend_on_those_beside_it():
    span, labels = subjects(50, 200, 1.0, 0.5)
    coordinates, _ = span.coordinates()
    kept = np.random.default_rng(3).random((50, 4)) < 0.7
    costs = np.array([0.01, 1.0, 100.0, 3.0])
    together = Fits(coordinates, labels, kept, costs).margins()
    for place in range(4):
        alone = Fits(coordinates, labels, kept[:, [place]], costs[[place]]).margins()
        np.testing.assert_allclose(together[:, [place]], alone, rtol=0, atol=1e-7)


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.9])
def test_the_cost_is_that_of_one_fit_after_the_other(decay):
    span, labels = subjects(90, 300, 0.4, decay)
    coordinates, back = span.coordinates()
    duplicates = np.arange(len(labels))
    folds = inner_folds(labels, duplicates, 5)
    losses = []
    for cost in COSTS:
        each = []
        for fold in range(5):
            own = folds != fold
            fit = LogisticRegression(C=cost, solver="newton-cholesky", tol=1e-12, max_iter=500)
            margins = fit.fit(coordinates[own], labels[own]).decision_function(coordinates[~own])
            each.append(np.mean(np.logaddexp(0, (1 - 2 * labels[~own]) * margins)))
        losses.append(np.mean(each))
    best = LogisticRegression(C=COSTS[int(np.argmin(losses))], solver="newton-cholesky", tol=1e-10)
    best.fit(coordinates, labels)
    model = fit_logistic(TrainingSet(span, labels, duplicates, 5), COSTS)
    expected = span.model(back @ best.coef_[0], float(best.intercept_[0]))
    np.testing.assert_array_equal(model.weights, expected.weights)
