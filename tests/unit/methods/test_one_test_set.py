"""Every method under a split with one test set: it equals the first fold of several, and needs no second class."""

from dataclasses import replace

import numpy as np
import pytest

from brainfed.methods.inpainter import inpainter_of
from brainfed.methods.registry import METHODS
from brainfed.runtime.entry import resolve
from brainfed.runtime.jobs.run import Run
from brainfed.samples.public_series_inputs import PublicSeriesInputs
from brainfed.samples.results import check, history_table, predictions_table
from fused_inputs import with_fused
from graph_cohort import graph_inputs
from method_inputs import diagnosis_of, method_inputs
from series_cohort import inputs_for, series_inputs, tiny

FEW = {"costs": (0.1, 1.0)}
ALPHAS = {"alphas": (0.1, 1.0, 10.0)}
ROUNDS, EPOCHS = {"rounds": 3, "local_epochs": 2}, {"epochs": 4, "curve_every": 2}
SMALL = {
    "majority": {},
    "phenotype": {},
    "motion": {},
    "ridge-local": {"training": "local"} | ALPHAS,
    "ridge-central": {"training": "central"} | ALPHAS,
    "ridge-federated": ALPHAS,
    "fedtangent": ALPHAS,
    "svm-local": {"training": "local"} | FEW,
    "logistic-central": {"training": "central"} | FEW,
    "logistic-federated": FEW,
    "localmlp": EPOCHS,
    "centralmlp": EPOCHS,
    "localgcn": EPOCHS,
    "centralgcn": EPOCHS,
    "fedmlp": ROUNDS,
    "fedgcn": ROUNDS,
    "fedsage-plus": ROUNDS,
    "fedni": ROUNDS,
    "fedni-centroids": ROUNDS,
    "selftrain": {"epochs": 3},
    "central-gin": {"epochs": 3},
    "fedavg-gin": {"rounds": 3},
    "ridge-dp": {"rounds": 3},
    "fedtangent-dp": {"rounds": 3},
    "logistic-dp": {"rounds": 3},
    "fedmlp-dp": {"rounds": 3},
    "gcfl": {"rounds": 3, "first_cut": 1, "eps1": 10, "eps2": 0},
    "stgcn-local": {"epochs": 2},
    "stgcn-central": {"epochs": 2},
    "gnn-local": {"epochs": 2},
    "gnn-central": {"epochs": 2},
    "fedavg-stgcn": {"rounds": 2, "privacy": "classical"},
    "fedgnn": {"rounds": 2, "privacy": "paper"},
    "fglbc": {"rounds": 2, "privacy": "none"},
    "recurrent-local": {},
    "recurrent-central": {},
    "recurrent-public": {},
    "fedgems": {},
    "fedet": {},
    "gahfl": {},
}
every_method = pytest.mark.parametrize("name", SMALL)


def method_of(name):
    return METHODS.get(name) or METHODS[name.rsplit("-", 1)[0]]


def inputs_of(name, subjects=60, **changes):
    """Five folds of subjects, of graphs, or of region series."""
    method = method_of(name)
    if "series" in method.needs:
        return inputs_for(method, series_inputs(subjects, **changes))
    if "connectomes" in method.needs:
        return graph_inputs(subjects, **changes)
    inputs = method_inputs(subjects, **changes)
    return inputs if inpainter_of(method) is None else with_fused(inputs)


def with_one_test_set(inputs):
    """The first fold is tested, all others train."""
    public = {"public": inputs.public[:1]} if isinstance(inputs, PublicSeriesInputs) else {}
    return replace(inputs, fold=np.where(inputs.fold == 0, 0, -1), labels=inputs.labels[:1], **public)


def outcome_of(name, inputs):
    method = method_of(name)
    return resolve(method.entry)(inputs, method.settings(**tiny(method.settings), **SMALL[name]), Run())


def test_every_method_is_tried():
    assert {method_of(name).name for name in SMALL} == set(METHODS)


@every_method
def test_one_test_set_is_scored_like_the_first_of_several_folds(name):
    inputs = inputs_of(name)
    several, single = outcome_of(name, inputs), outcome_of(name, with_one_test_set(inputs))
    assert single.scores.shape == (1, *several.scores.shape[1:])
    np.testing.assert_allclose(single.scores[0], several.scores[0], rtol=1e-4, atol=1e-5)


@every_method
def test_those_who_only_train_have_no_score(name):
    truth, inputs = diagnosis_of(inputs_of(name)), with_one_test_set(inputs_of(name))
    found = outcome_of(name, inputs)
    check(inputs, found)
    table = predictions_table(inputs, found, truth)
    assert table["subject"].tolist() == [inputs.subjects[place] for place in np.flatnonzero(inputs.fold == 0)]
    history = history_table(inputs, found, truth)
    assert set(history["fold"]) <= {0} and history["test_accuracy"].notna().all()


@every_method
def test_training_subjects_of_one_class_in_an_institution_stop_nothing(name):
    inputs = inputs_of(name, diagnosis=np.where(np.arange(60) % 3 == 0, 0, np.arange(60) // 3 % 2))
    inputs = with_one_test_set(inputs)
    own = inputs.institution == 0
    assert set(inputs.labels[0, own]) == {-1, 0}
    check(inputs, outcome_of(name, inputs))
