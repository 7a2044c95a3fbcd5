"""Scores of training subjects: of every method, of all of them, and by the model that scores the tested ones."""

from dataclasses import fields, replace
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest

from brainfed.evaluation._audit import audit, shadow_runs
from brainfed.methods import METHODS
from brainfed.runtime import resolve
from brainfed.runtime.jobs import Run
from brainfed.samples import LabelledSubjects, SeriesInputs, check, hidden_labels, members_table, predictions_table
from support.samples.method_inputs import diagnosis_of, method_inputs
from support.samples.quick_methods import (
    METHOD_OF,
    WHY,
    engine_and_topology,
    fields_of,
    first_of_each,
    read_by,
    settings_of,
    topology_of,
    train,
)
from support.samples.series_cohort import inputs_for

DIMENSIONS = 36
"""Connections of nine regions."""
FOLDS = 3
CHOOSING = {"choose": "inner", "weight_decays": (0.0, 0.1)}
TRIED = first_of_each(
    METHOD_OF, lambda name: (METHOD_OF[name].name, topology_of(name), getattr(settings_of(name), "solver", ""))
)
CASES = {name: (name, {}) for name in TRIED if METHOD_OF[name].capabilities.members} | {
    f"{name}-choosing": (name, CHOOSING)
    for name in TRIED
    if "choose" in fields_of(METHOD_OF[name]) and METHOD_OF[name].needs == ("features",)
}
FIRST = first_of_each(TRIED, engine_and_topology)
every_method = pytest.mark.parametrize("name", CASES)


def outcome_of(name, inputs):
    variant, further = CASES[name]
    method = METHOD_OF[variant]
    read = inputs_for(method, series_inputs(inputs)) if "series" in method.needs else read_by(variant, inputs)
    return train(variant, read, **further)


def series_inputs(inputs):
    """The same subjects; the features of each are three regions at twelve time points, as long as a crop."""
    series = inputs.features[0].reshape(len(inputs.subjects), 12, 3)
    series = (series - series.mean(axis=1, keepdims=True)) / series.std(axis=1, keepdims=True)
    shared = {field.name: getattr(inputs, field.name) for field in fields(LabelledSubjects)}
    return SeriesInputs(**shared, start=np.arange(len(series) + 1) * 12, series=series.reshape(-1, 3))


def pairs_of(inputs):
    """Two subjects of each institution in different folds, at odd places: `with_fused` gives these no neighbour."""
    for code in range(len(inputs.institutions)):
        odd = [place for place in inputs.members(code) if place % 2]
        yield odd[0], next(place for place in odd if inputs.fold[place] != inputs.fold[odd[0]])


def with_copies(inputs):
    """The same cohort; the second subject of each pair has the features and the phenotype of the first."""
    source = np.arange(len(inputs.subjects))
    for first, second in pairs_of(inputs):
        source[second] = first
    held, features = inputs.phenotypes, inputs.features[0][source]
    made = method_inputs(len(source), features.shape[1], folds=FOLDS, features=features, diagnosis=diagnosis_of(inputs))
    copied = {name: getattr(held, name)[source] for name in ("site", "sex", "age", "mean_fd")}
    return replace(made, phenotypes=replace(held, **copied))


def scored(name, inputs):
    """What is found, once every training subject has scores and nobody else."""
    outcome = outcome_of(name, inputs)
    assert outcome.member_scores is not None
    check(inputs, outcome)
    table = members_table(inputs, outcome, diagnosis_of(inputs))
    assert len(table) == (inputs.labels >= 0).sum() == len(inputs.subjects) * (inputs.folds - 1)
    return outcome


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if of[0] in FIRST else pytest.mark.full(WHY)) for name, of in CASES.items()]
)
def test_training_subjects_have_scores_where_a_site_is_left_out(name):
    scored(name, method_inputs(36, DIMENSIONS, split="leave-one-site-out"))


@every_method
def test_a_training_subject_is_scored_like_a_tested_copy_of_it(name):
    """Same institution, features and neighbours: a model cannot know which of the two it learnt from."""
    inputs = with_copies(method_inputs(36, DIMENSIONS, folds=FOLDS))
    outcome = scored(name, inputs)
    for pair in pairs_of(inputs):
        for tested, taught in (pair, pair[::-1]):
            fold = inputs.fold[tested]
            np.testing.assert_allclose(
                outcome.member_scores[fold, taught], outcome.scores[fold, tested], rtol=1e-5, atol=1e-6
            )


@pytest.mark.parametrize("name", [name for name in TRIED if not METHOD_OF[name].capabilities.members])
def test_a_method_that_declares_none_has_none(name):
    assert train(name, read_by(name, method_inputs(36, DIMENSIONS, folds=FOLDS))).member_scores is None


def overfitted(inputs):
    method = METHODS["ridge"]
    return resolve(method.entry)(inputs, method.settings(**method.variants["ridge-overfitted"]), Run())


def test_a_method_that_learns_its_subjects_by_heart_knows_them():
    """With next to no penalty and more features than subjects the margin of each training subject is 1."""
    inputs = method_inputs(60, 200)
    outcome, truth = overfitted(inputs), diagnosis_of(inputs)
    for fold in range(inputs.folds):
        taught, tested = inputs.training(fold), inputs.tested(fold)
        np.testing.assert_allclose(outcome.member_scores[fold, taught, truth[taught]], 1, atol=1e-4)
        assert np.abs(outcome.scores[fold, tested, truth[tested]] - 1).mean() > 0.1


def drawn_anew(inputs, truth, repeat):
    """The same subjects with other folds, even in every institution and class and drawn for each of them alone."""
    rng, fold = np.random.default_rng([repeat, inputs.streams.seed]), np.zeros_like(inputs.fold)
    for code, label in product(range(len(inputs.institutions)), (0, 1)):
        own = rng.permutation(np.flatnonzero((inputs.institution == code) & (truth == label)))
        fold[own] = np.arange(len(own)) % inputs.folds
    return replace(inputs, fold=fold, labels=hidden_labels(truth, fold))


def audit_of(train, inputs, repeats=3):
    truth, tables = diagnosis_of(inputs), ([], [])
    for repeat in range(repeats):
        drawn = drawn_anew(inputs, truth, repeat)
        for held, table in zip(tables, (predictions_table, members_table), strict=True):
            held.append(table(drawn, train(drawn), truth).assign(repeat=repeat))
    return dict(audit(shadow_runs(*map(pd.concat, tables), {})))


@cache
def audits():
    """Of real models of six cohorts; 200 features name every subject, its head motion alone hardly any."""
    cohorts = [method_inputs(60, 200, effect=0.0, seed=seed) for seed in range(6)]
    of_all = [audit_of(overfitted, inputs) for inputs in cohorts]
    return of_all, [audit_of(lambda inputs: outcome_of("motion", inputs), inputs) for inputs in cohorts]


@pytest.mark.parametrize("attack", ["lira", "loss"])
def test_the_audit_finds_the_training_subjects_of_an_overfitted_model_and_not_those_of_one_feature(attack):
    of_all, of_one = audits()
    assert min(found[attack].auc for found in of_all) > 0.85
    assert min(found[attack].tpr_low for found in of_all) > 0.2
    assert np.mean([found[attack].auc for found in of_one]) < 0.6
    for found in (of_all, of_one):
        others = [each[f"{attack}-others"].auc for each in found]
        assert abs(np.mean(others) - 0.5) < 3 * np.std(others, ddof=1) / np.sqrt(len(others))
