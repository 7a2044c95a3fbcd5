"""Patterns of linear models are Haufe's, find what weights hide, and read training subjects alone."""

from dataclasses import replace

import numpy as np
import pytest

from brainfed.methods import METHODS
from brainfed.methods.linear import train
from brainfed.methods.linear._dual import training_span
from brainfed.methods.linear.declaration import LogisticSettings, RidgeSettings, SVMSettings
from brainfed.methods.linear.train import TrainingSet
from brainfed.runtime import resolve
from brainfed.runtime.jobs import Run
from reference.haufe import dense_pattern
from support.samples.method_inputs import diagnosis_of, method_inputs, relabelled, scrambled

FIT = {"ridge": train.fit_ridge, "svm": train.fit_svm, "logistic": train.fit_logistic}
DECLARED = [name for name, method in METHODS.items() if method.capabilities.patterns]
every_method = pytest.mark.parametrize("name", FIT)
both_trainings = pytest.mark.parametrize("training", ["local", "central"])


def patterns(name, inputs, training="central"):
    settings = {"ridge": RidgeSettings, "svm": SVMSettings, "logistic": LogisticSettings}[name](training=training)
    return resolve(METHODS[name].entry)(inputs, settings, Run()).patterns


def fitted(name, features, labels, penalty=1.0, standardise="institution"):
    span = training_span(features, np.ones(len(labels), dtype=bool), standardise)
    return FIT[name](TrainingSet(span, labels, np.arange(len(labels)), 0), [penalty])


@every_method
@pytest.mark.parametrize("standardise", ["institution", "none"])
@pytest.mark.parametrize("shape", [(30, 80), (60, 7)])
def test_it_is_the_pattern_of_the_whole_covariance(name, standardise, shape):
    rng = np.random.default_rng(0)
    features = rng.standard_normal(shape) * rng.uniform(0.5, 3, shape[1]) + rng.uniform(-1, 1, shape[1])
    features[:, 3] = 0.7
    labels = rng.permutation(np.arange(shape[0]) % 2)
    model = fitted(name, features, labels, 0.3, standardise)
    np.testing.assert_allclose(model.pattern, dense_pattern(features, model.weights), rtol=1e-7, atol=1e-10)
    assert abs(model.pattern[3]) < 1e-12


def mixed(subjects=1200, seed=0):
    """Haufe's example (Sec. 2.1) in ten channels: signal and distractor in the first, the distractor in the second."""
    rng = np.random.default_rng(seed)
    labels = np.arange(subjects) % 2
    features = 0.5 * rng.standard_normal((subjects, 10))
    features[:, :2] += 2 * rng.standard_normal(subjects)[:, None]
    features[:, 0] += labels - 0.5
    return features, labels


@every_method
def test_the_pattern_recovers_the_channel_of_the_signal_and_the_weights_do_not(name):
    features, labels = mixed()
    model = fitted(name, features, labels, {"ridge": 0.001, "svm": 100.0, "logistic": 100.0}[name], "none")
    # The best weights are S^-1 e, S = d d' + I / 4, d = (2, 2, 0, ...): e - d (d'e) / (1/4 + |d|^2).
    best = np.array([1 - 4 / 8.25, -4 / 8.25])
    assert model.weights[1] / model.weights[0] == pytest.approx(best[1] / best[0], abs=0.05)
    # The pattern is the difference of the classes' means, e.
    assert abs(model.pattern[1]) < 0.2 * model.pattern[0]
    assert model.pattern[0] / np.linalg.norm(model.pattern) > 0.95
    assert model.weights[0] / np.linalg.norm(model.weights) < 0.8


@every_method
def test_a_unit_of_a_feature_is_a_unit_of_its_pattern(name):
    features, labels = mixed(60)
    units = 2.0 ** (np.arange(10) % 7 - 3)
    one, other = fitted(name, features, labels), fitted(name, features * units + 4, labels)
    np.testing.assert_allclose(other.pattern, units * one.pattern, rtol=1e-6)


def test_the_size_of_a_score_does_not_count_and_its_sign_does():
    features, _ = mixed(60)
    span = training_span(features, np.ones(60, dtype=bool), "institution")
    dual = np.random.default_rng(1).standard_normal(60)
    expected = span.pattern(dual)
    np.testing.assert_allclose(span.pattern(100 * dual), expected, rtol=1e-12)
    np.testing.assert_allclose(span.pattern(-0.01 * dual), -expected, rtol=1e-12)


@every_method
@both_trainings
def test_one_pattern_a_fold_in_single_precision(name, training):
    inputs = method_inputs()
    found = patterns(name, inputs, training)
    assert (found.shape, found.dtype) == ((3, 1, 30), np.float32)
    # The first fifth of the features lie higher in patients.
    assert (found[:, 0, :6].mean(axis=1) > 2 * np.abs(found[:, 0, 6:].mean(axis=1))).all()


@every_method
def test_the_local_pattern_is_the_mean_over_institutions(name):
    inputs = method_inputs()
    alone = []
    for institution in range(3):
        there = inputs.institution == institution
        only = replace(inputs, labels=np.where(there, inputs.labels, -1), fold=np.where(there, inputs.fold, -1))
        alone.append(patterns(name, only, "local"))
    np.testing.assert_allclose(patterns(name, inputs, "local"), np.mean(alone, axis=0), rtol=1e-5, atol=1e-7)


@every_method
def test_an_institution_with_a_constant_score_has_no_say_in_the_pattern(name):
    inputs = method_inputs()
    diagnosis = np.where(inputs.institution == 0, 0, diagnosis_of(inputs))
    one_sided = relabelled(inputs, diagnosis)
    others = replace(
        one_sided,
        labels=np.where(inputs.institution == 0, -1, one_sided.labels),
        fold=np.where(inputs.institution == 0, -1, inputs.fold),
    )
    np.testing.assert_array_equal(patterns(name, one_sided, "local"), patterns(name, others, "local"))


@every_method
def test_without_a_score_that_varies_the_pattern_is_zero(name):
    inputs = method_inputs(subjects=16, institutions=1, folds=4)
    alike = replace(inputs, features=(np.ones((16, 3), dtype=np.float32),))
    assert not patterns(name, alike).any()


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        *((name, {"training": training}) for name in FIT for training in ("local", "central")),
        *((name, {}) for name in DECLARED if name not in FIT),
    ],
)
def test_a_fold_s_pattern_knows_nothing_of_the_subjects_that_it_tests(name, settings):
    inputs, method = method_inputs(), METHODS[name]
    tested = inputs.tested(2)
    elsewhere = replace(
        scrambled(inputs, 2), features=(np.where(tested[:, None], 7 - 3 * inputs.features[0], inputs.features[0]),)
    )
    expected, found = (
        resolve(method.entry)(one, method.settings(**settings), Run()).patterns for one in (inputs, elsewhere)
    )
    assert (found.shape, found.dtype) == ((3, 1, 30), np.float32)
    assert found[2].tobytes() == expected[2].tobytes()
    assert all(found[fold].tobytes() != expected[fold].tobytes() for fold in (0, 1))


@every_method
def test_every_one_of_several_classes_has_a_pattern_against_the_rest(name):
    inputs = method_inputs(subjects=90, effect=0.0)
    diagnosis = np.random.default_rng(3).permutation(np.arange(90) % 3)
    features = inputs.features[0].copy()
    features[np.arange(90), diagnosis] += 3
    three = replace(relabelled(inputs, diagnosis), features=(features,), classes=3)
    found = patterns(name, three)
    assert found.shape == (3, 3, 30)
    assert (found.argmax(axis=2) == np.arange(3)).all()


def test_the_methods_that_declare_patterns_are_those_that_leave_them():
    assert set(FIT) < set(DECLARED)
    others = [name for name in ("majority", "phenotype", "motion") if not METHODS[name].capabilities.patterns]
    for name in others:
        method = METHODS[name]
        assert resolve(method.entry)(method_inputs(), method.settings(), Run()).patterns is None
