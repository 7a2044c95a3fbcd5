"""The parts of the views add up to the margin of a linear model, but for a constant of the model."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logit

from brainfed.methods import METHODS
from brainfed.methods.fedtangent.declaration import FederatedRidgeSettings
from brainfed.methods.fedtangent.train import train_fedtangent
from brainfed.methods.linear.declaration import LogisticSettings, RidgeSettings
from brainfed.runtime import resolve
from brainfed.runtime.jobs import Run
from brainfed.samples import View, check
from support.samples.method_inputs import method_inputs, relabelled, scrambled


def two_views():
    inputs = method_inputs(75, 40)
    everybody = np.ones(75, dtype=bool)
    views = (
        View("one", slice(0, 10), 1.0, "all", "own", False, None, everybody),
        View("two", slice(10, 40), 0.3, "site", "own", True, 1.5, everybody),
    )
    return replace(inputs, views=views)


def trained(name, inputs):
    if name == "averaged":
        return train_fedtangent(inputs, FederatedRidgeSettings((1.0,), solver="fedavg"), Run())
    if name == "federated":
        return train_fedtangent(inputs, FederatedRidgeSettings(tolerance=1e-9), Run())
    method, training = name.split()
    settings = {"ridge": RidgeSettings, "logistic": LogisticSettings}[method](training=training)
    return resolve(METHODS[method].entry)(inputs, settings, Run())


every_model = pytest.mark.parametrize(
    "name", ["ridge local", "ridge central", "logistic central", "federated", "averaged"]
)


@every_model
def test_parts_add_up_to_the_margin(name):
    inputs = two_views()
    outcome = trained(name, inputs)
    check(inputs, outcome)
    assert outcome.contributions.shape == (75, 1, 2)
    scores = outcome.scores[inputs.fold, np.arange(75), 1]
    margin = logit(scores) if outcome.kind == "probability" else scores
    rest = margin - outcome.contributions[:, 0].astype(np.float64).sum(axis=1)
    for fold in range(inputs.folds):
        for code in range(len(inputs.institutions)):
            own = rest[(inputs.fold == fold) & (inputs.institution == code)]
            np.testing.assert_allclose(own, own[0], atol=1e-5)


@every_model
def test_parts_know_nothing_of_the_labels_of_tested_subjects(name):
    inputs = two_views()
    tested = inputs.tested(2)
    expected, found = (trained(name, one).contributions for one in (inputs, scrambled(inputs, 2)))
    assert found[tested].tobytes() == expected[tested].tobytes()
    assert found[~tested].tobytes() != expected[~tested].tobytes()


def test_every_class_has_its_own_parts():
    inputs = replace(relabelled(two_views(), np.arange(75) % 3), classes=3)
    for name in ("ridge central", "federated"):
        outcome = trained(name, inputs)
        check(inputs, outcome)
        scores = outcome.scores[inputs.fold, np.arange(75)]
        rest = scores - outcome.contributions.astype(np.float64).sum(axis=2)
        first = inputs.fold == 0
        np.testing.assert_allclose(rest[first], np.broadcast_to(rest[first][0], rest[first].shape), atol=1e-5)


@pytest.mark.parametrize("name", ["ridge central", "federated"])
def test_without_views_there_are_no_parts(name):
    assert trained(name, method_inputs(75, 40)).contributions is None


def test_parts_that_miss_a_subject_break_the_contract():
    inputs = two_views()
    outcome = trained("ridge central", inputs)
    parts = outcome.contributions.copy()
    parts[3] = np.nan
    with pytest.raises(ValueError, match="expected finite contributions"):
        check(inputs, replace(outcome, contributions=parts))


def test_the_scaling_of_the_views_goes_with_a_model_that_helps_an_unseen_institution():
    views = two_views().views
    one, two = 10 + 10 + 1, (3 + 1) * 30 + 30 + 1  # means, of three sites and of all in view two, deviations, scale
    held_out = replace(method_inputs(75, 40, split="leave-one-site-out"), views=views)
    outcome = trained("ridge local", held_out)
    check(held_out, outcome)
    crossed = {(row["name"], row["direction"], row["institutions"], row["bytes"]) for row in outcome.crossings}
    assert crossed == {
        (name, direction, institutions, copies * 8 * numbers)
        for name, numbers in (("model", 41), ("scaling", one + two))
        for direction, institutions, copies in (("upload", "1 2", 2), ("download", "0", 2))
    }
