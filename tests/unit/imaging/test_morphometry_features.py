"""Measures as features: units and constant training features have no effect, and kinds do not mix."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from brainfed.cohort.settings import FreeSurferSettings
from brainfed.configuration import load_plan, validate
from brainfed.graphs import GraphSettings, build_graph
from brainfed.graphs._embedding import fit_projection, fit_scaled_projection
from brainfed.methods import METHODS
from brainfed.runtime import Streams, UserError, resolve
from brainfed.runtime.jobs import Run
from support.samples.method_inputs import method_inputs

UNITS = np.array([1e-3, 1.0, 1e3, 1e6])
"""Units of measures: shares, mm, mm² and mm³."""


def measures(n=40, seed=0):
    return np.random.default_rng(seed).standard_normal((n, 4)) + 5


def test_scaled_components_are_those_of_z_scores():
    raw = measures() * UNITS
    z = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    expected = fit_projection(z, 3)(z)
    np.testing.assert_allclose(fit_scaled_projection(raw, 3)(raw), expected, atol=1e-9)


@settings(deadline=None)
@given(arrays(np.float64, 4, elements=st.floats(1e-4, 1e6)))
def test_units_do_not_move_a_scaled_embedding(units):
    plain = measures()
    np.testing.assert_allclose(
        np.abs(fit_scaled_projection(plain * units, 2)(plain * units)),
        np.abs(fit_scaled_projection(plain, 2)(plain)),
        atol=1e-6,
    )


def test_a_measure_that_is_constant_in_the_fit_does_not_affect_the_embedding():
    raw = np.column_stack([measures(), np.zeros(40)])
    projection = fit_scaled_projection(raw, 3)
    strange = raw.copy()
    strange[:, 4] = 1e6
    np.testing.assert_array_equal(projection(strange), projection(raw))


def graph(features, training=None, **options):
    n = len(features)
    return build_graph(
        features,
        np.arange(n) % 2,
        site=np.zeros(n, np.int64),
        sex=np.arange(n) // 2 % 2,
        age=np.full(n, 20.0),
        settings=GraphSettings(
            **{"k": 3, "scope": "local", "embedding_dimensions": 3, "scaling": "columns", **options}
        ),
        streams=Streams(0),
        training=training,
    )


@pytest.mark.parametrize("scope", ["local", "global"])
def test_a_scaled_graph_is_not_the_graph_of_the_largest_unit(scope):
    plain = measures().astype(np.float32)
    scaled, again = graph(plain, scope=scope), graph((plain * UNITS).astype(np.float32), scope=scope)
    assert np.array_equal(scaled.column, again.column)
    np.testing.assert_allclose(scaled.weight, again.weight, rtol=1e-4)
    largest = graph((plain * UNITS).astype(np.float32), scope=scope, scaling="none")
    assert not np.array_equal(scaled.column, largest.column)


def test_scaling_is_fitted_to_training_subjects_of_the_own_institution():
    raw = (measures() * UNITS).astype(np.float32)
    training = np.arange(40) < 30
    before = graph(raw, training)
    other = raw.copy()
    other[35] *= 100  # a test subject of institution 1
    other[1] *= 3  # a training subject of institution 1
    after = graph(other, training)
    first = np.arange(40) % 2 == 0
    np.testing.assert_array_equal(before.embedding[first], after.embedding[first])
    other[1] = raw[1]
    kept = np.arange(40) != 35
    np.testing.assert_array_equal(before.embedding[kept], graph(other, training).embedding[kept])


METHOD_SETTINGS = {
    "ridge": {"training": "central"},
    "svm": {"training": "local"},
    "logistic": {"training": "central"},
    "logistic-federated": {"rounds": 2},
    "fedmlp": {"rounds": 2, "local_epochs": 2},
    "fedgcn": {"rounds": 2, "local_epochs": 2},
}


@pytest.mark.parametrize("name", METHOD_SETTINGS)
def test_a_measure_without_variance_in_training_affects_no_test_score(name):
    method = METHODS[name]
    settings = replace(method.settings(), **METHOD_SETTINGS[name])
    inputs = method_inputs(protocol="inductive")
    train = resolve(method.entry)
    plain = np.concatenate([inputs.features[0], np.zeros((len(inputs.subjects), 1), np.float32)], axis=1)
    tested = np.flatnonzero(inputs.tested(0))
    strange = plain.copy()
    strange[tested, -1] = 1e4
    before, after = (
        train(replace(inputs, features=(rows,)), settings, Run()).scores[..., 1][0] for rows in (plain, strange)
    )
    np.testing.assert_array_equal(before[tested], after[tested])


CONFIG = {
    "project": "p",
    "cohorts": {"brains": {"source": "freesurfer"}},
    "experiments": {"e": {"variants": ["majority", "ridge-central", "fedgcn"]}},
}


def test_a_plan_of_measures_scales_its_graphs():
    plan = load_plan(CONFIG | {"features": {"kind": "morphometry"}})
    (features,) = plan.stages["features"].values()
    assert features.name.startswith("morphometry-")
    assert not features.by_fold
    assert {stage.settings.scaling for stage in plan.stages["graph"].values()} == {"columns"}
    simulated = load_plan(CONFIG | {"cohorts": {"brains": {"source": "simulate"}}})
    assert {stage.settings.scaling for stage in simulated.stages["graph"].values()} == {"none"}


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        ("freesurfer", "connectivity", "expected variants with morphometry features for cohort 'brains', whose source"),
        ("simulate", "morphometry", "expected variants with connectivity features for cohort 'brains', whose source"),
    ],
)
def test_features_of_another_kind_than_the_cohort_has_are_refused(source, kind, words):
    with pytest.raises(
        UserError, match=rf"experiments.e: {words} is '{source}', found 'ridge-central' with {kind}; set"
    ):
        load_plan(CONFIG | {"cohorts": {"brains": {"source": source}}, "features": {"kind": kind}})


def test_a_cohort_of_another_kind_may_have_an_experiment_of_its_own():
    variants = {"ridge-structure": {"method": "ridge", "training": "central", "features": {"kind": "morphometry"}}}
    experiments = {
        "function": {"variants": ["ridge-central"], "cohorts": ["scans"]},
        "structure": {"variants": ["ridge-structure"], "cohorts": ["brains"], "reference": "ridge-structure"},
    }
    cohorts = {"brains": {"source": "freesurfer"}, "scans": {"source": "simulate"}}
    plan = load_plan({"project": "p", "cohorts": cohorts, "variants": variants, "experiments": experiments})
    assert {stage.settings.kind for stage in plan.stages["features"].values()} == {"connectivity", "morphometry"}


@pytest.mark.parametrize("setting", [{"connectivity": "tangent"}, {"fisher_z": True}])
def test_measures_have_no_correlations(setting):
    with pytest.raises(UserError, match="expected connectivity beside settings of it, found morphometry with"):
        load_plan(CONFIG | {"features": {"kind": "morphometry", **setting}})


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"tables": ["a"], "subjects_dir": "b"}, "expected either tables or subjects_dir, found both"),
        ({"measures": []}, "expected volume, thickness or area, found none"),
        ({"parcellations": []}, "expected one for thickness and area, found none"),
    ],
)
def test_impossible_settings_are_refused(setting, words):
    with pytest.raises(UserError, match=words):
        validate(FreeSurferSettings, setting, "config")
