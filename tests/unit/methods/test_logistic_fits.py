"""Logistic regressions side by side are those of scikit-learn, one after the other."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from brainfed.methods.linear.dual import training_span
from brainfed.methods.linear.fitting import TrainingSet
from brainfed.methods.linear.logistic import LogisticSettings
from brainfed.methods.linear.logistic_fits import Fits
from brainfed.methods.linear.train_logistic import fit_logistic
from brainfed.samples.inner_folds import inner_folds

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
    twins = np.arange(len(labels))
    folds = inner_folds(labels, twins, 5)
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
    model = fit_logistic(TrainingSet(span, labels, twins, 5), COSTS)
    expected = span.model(back @ best.coef_[0], float(best.intercept_[0]))
    np.testing.assert_array_equal(model.weights, expected.weights)
