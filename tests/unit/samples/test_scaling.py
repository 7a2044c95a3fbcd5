"""Scaling by training subjects alone, of all columns or of views, as sums over institutions."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from brainfed.samples import MethodInputs, View, fit_scaling, scaled, training_moments
from brainfed.samples import _scaling as scaling
from reference.view_scaling import scaled_plainly
from support.samples.method_inputs import method_inputs


def test_moments_by_hand():
    features = np.array([[1.0, 5.0], [3.0, 5.0], [100.0, 7.0]], dtype=np.float32)
    mean, deviation = training_moments(features, np.array([True, True, False]))
    assert mean.tolist() == [2.0, 5.0]
    assert deviation.tolist() == [1.0, np.inf]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_column_is_no_column_whatever_its_rounding(dtype):
    features = np.full((7, 1), 0.1, dtype=dtype)
    _, deviation = training_moments(features, np.ones(7, dtype=bool))
    assert deviation.tolist() == [np.inf]


@pytest.mark.parametrize("entries", [1, 600])
def test_blocks_of_columns_give_the_same_bits(entries, monkeypatch):
    features = np.random.default_rng(1).standard_normal((40, 33)).astype(np.float32)
    features[:, 5] = 1
    rows = np.arange(40) % 4 > 0
    expected = training_moments(features, rows)
    monkeypatch.setattr(scaling, "BLOCK_ENTRIES", entries)
    for found, known in zip(training_moments(features, rows), expected, strict=True):
        assert found.tobytes() == known.tobytes()


def test_accumulates_float32_in_float64():
    features = (10_000 + np.random.default_rng(0).standard_normal((5000, 2))).astype(np.float32)
    mean, deviation = training_moments(features, np.ones(5000, dtype=bool))
    exact = features.astype(np.float64)
    assert mean.dtype == deviation.dtype == np.float64
    np.testing.assert_allclose(mean, exact.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(deviation, exact.std(axis=0), rtol=1e-12)


@given(
    arrays(np.float64, (6, 3), elements=st.integers(-50, 50).map(float)),
    st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_z_scores_of_training_rows_have_mean_zero_and_deviation_one_or_zero(features, chosen):
    rows = np.array(chosen)
    rows[0] = True
    mean, deviation = training_moments(features, rows)
    scores = (features[rows] - mean) / deviation
    np.testing.assert_allclose(scores.mean(axis=0), 0, atol=1e-12)
    constant = np.ptp(features[rows], axis=0) == 0
    np.testing.assert_allclose(scores.std(axis=0), np.where(constant, 0, 1), atol=1e-12)


def test_rows_that_are_not_chosen_change_nothing():
    features = np.random.default_rng(1).standard_normal((8, 4))
    rows = np.arange(8) < 5
    other = np.where(rows[:, None], features, 1e6)
    for before, after in zip(training_moments(features, rows), training_moments(other, rows), strict=True):
        assert before.tobytes() == after.tobytes()


def test_no_training_subject_has_no_moments():
    with pytest.raises(ValueError, match="found none"):
        training_moments(np.zeros((3, 2)), np.zeros(3, dtype=bool))


SUBJECTS, WIDE, NARROW = 40, 12, 5

SITES = 4

UNSEEN = SITES


def inputs_with_views(seed: int = 0, institutions: int = 3, **second: object) -> MethodInputs:
    """A connectome of everybody, and a second view in other units that some subjects lack; sites cross institutions."""
    rng = np.random.default_rng(seed)
    site = rng.integers(0, SITES, SUBJECTS)
    connectome = rng.standard_normal((SUBJECTS, WIDE)) + 3
    thickness = 2.5 + 0.2 * rng.standard_normal((SUBJECTS, NARROW)) + 0.5 * site[:, None]
    present = rng.random(SUBJECTS) < 0.8
    features = np.hstack([connectome, np.where(present[:, None], thickness, 0)]).astype(np.float32)
    inputs = method_inputs(SUBJECTS, institutions=institutions, folds=4, seed=seed, features=features)
    described = {"weight": 0.15, "centre": "site", "unseen_site": "own", "standardise": True, "clip": 2.0} | second
    everybody = np.ones(SUBJECTS, dtype=bool)
    views = (
        View("connectome", slice(0, WIDE), 1.0, "all", "own", False, None, everybody),
        View("thickness", slice(WIDE, WIDE + NARROW), present=present, **described),
    )
    return replace(inputs, views=views, phenotypes=replace(inputs.phenotypes, site=site))


SECOND = st.fixed_dictionaries(
    {
        "weight": st.floats(0.01, 10),
        "centre": st.sampled_from(["all", "site"]),
        "unseen_site": st.sampled_from(["own", "all"]),
        "standardise": st.booleans(),
        "clip": st.one_of(st.none(), st.floats(0.1, 4)),
    }
)


def left_out(inputs: MethodInputs, fold: int = 0) -> MethodInputs:
    """The same in which the subjects tested in a fold come from a site of their own."""
    site = np.where(inputs.tested(fold), UNSEEN, inputs.phenotypes.site)
    return replace(inputs, phenotypes=replace(inputs.phenotypes, site=site))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 999), institutions=st.integers(1, 4), second=SECOND)
def test_sums_over_institutions_give_what_the_plain_formula_gives(seed, institutions, second):
    inputs = inputs_with_views(seed, institutions, **second)
    rows = inputs.training(1)
    np.testing.assert_allclose(scaled(inputs, 1, rows), scaled_plainly(inputs, 1, rows), rtol=1e-10, atol=1e-10)
    apart = left_out(inputs, 1)
    np.testing.assert_allclose(scaled(apart, 1, rows), scaled_plainly(apart, 1, rows), rtol=1e-10, atol=1e-10)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 999), second=SECOND)
def test_the_mean_squared_norm_of_training_subjects_is_the_sum_of_the_weights(seed, second):
    inputs = inputs_with_views(seed, **second)
    rows = inputs.training(0)
    norms = np.square(scaled(inputs, 0, rows)[rows]).sum(axis=1)
    assert np.mean(norms) == pytest.approx(1 + second["weight"], rel=1e-12)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 999), second=SECOND)
def test_features_of_tested_subjects_change_nothing_in_the_fit(seed, second):
    inputs = inputs_with_views(seed, **second)
    rng = np.random.default_rng(seed)
    tested = inputs.tested(2)
    other = inputs.features[0].copy()
    other[tested] = 1000 * rng.standard_normal((int(tested.sum()), other.shape[1]))
    changed = replace(inputs, features=(other,))
    found, expected = (scaled(one, 2, inputs.training(2)) for one in (changed, inputs))
    np.testing.assert_array_equal(found[~tested], expected[~tested])
    for ours, theirs in zip(*(fit_scaling(one, 2, inputs.training(2)).views for one in (changed, inputs)), strict=True):
        np.testing.assert_array_equal(ours.means, theirs.means)
        np.testing.assert_array_equal(ours.deviation, theirs.deviation)
        assert ours.scale == theirs.scale


def test_the_site_of_a_tested_subject_is_centred_by_its_training_subjects():
    inputs = inputs_with_views(centre="site", standardise=False, clip=None)
    rows = inputs.training(0)
    thickness = fit_scaling(inputs, 0, rows).views[1]
    for site in range(SITES):
        members = rows & inputs.views[1].present & (inputs.phenotypes.site == site)
        np.testing.assert_allclose(thickness.means[site], inputs.features[0][members, WIDE:].mean(axis=0), rtol=1e-6)


def test_a_site_without_training_subjects_takes_the_mean_of_all_if_it_must_not_read_its_own():
    inputs = left_out(inputs_with_views(unseen_site="all", standardise=False, clip=None))
    rows = inputs.training(0)
    thickness = fit_scaling(inputs, 0, rows).views[1]
    mean = inputs.features[0][rows & inputs.views[1].present, WIDE:].astype(float).mean(axis=0)
    np.testing.assert_allclose(thickness.means[UNSEEN], mean, rtol=1e-12)
    apart = inputs.tested(0) & inputs.views[1].present
    expected = thickness.scale * (inputs.features[0][apart, WIDE:] - mean)
    np.testing.assert_allclose(scaled(inputs, 0, rows)[apart, WIDE:], expected, rtol=1e-6, atol=1e-7)


def test_a_site_without_training_subjects_is_centred_at_home_in_each_institution():
    inputs = left_out(inputs_with_views(standardise=False, clip=None))
    found = scaled(inputs, 0, inputs.training(0))[:, WIDE:]
    apart = inputs.tested(0) & inputs.views[1].present
    for institution in range(len(inputs.institutions)):
        own = apart & (inputs.institution == institution)
        assert own.sum() > 1
        np.testing.assert_allclose(found[own].mean(axis=0), 0, atol=1e-6)


def test_a_duplicate_that_trains_elsewhere_does_not_make_its_site_known():
    inputs = inputs_with_views(institutions=4, standardise=False, clip=None)
    site = inputs.fold.copy()
    site[np.flatnonzero((inputs.fold == 1) & inputs.views[1].present)[0]] = 0
    inputs = replace(inputs, institution=inputs.fold.copy(), phenotypes=replace(inputs.phenotypes, site=site))
    apart = inputs.tested(0) & inputs.views[1].present
    found = scaled(inputs, 0, inputs.training(0))[apart, WIDE:]
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-6)


def test_the_subjects_of_an_unseen_site_change_neither_the_fit_nor_the_features_of_others():
    inputs = left_out(inputs_with_views())
    rows, apart = inputs.training(0), inputs.tested(0)
    other = inputs.features[0].copy()
    other[apart, WIDE:] += 100
    moved = replace(inputs, features=(other,))
    found, expected = scaled(moved, 0, rows), scaled(inputs, 0, rows)
    np.testing.assert_array_equal(found[~apart], expected[~apart])
    np.testing.assert_allclose(found[apart, WIDE:], expected[apart, WIDE:], atol=1e-3)


def test_subjects_of_an_unknown_site_take_the_mean_of_all():
    inputs = inputs_with_views(standardise=False, clip=None)
    unknown = np.where(inputs.tested(0), -1, inputs.phenotypes.site)
    inputs = replace(inputs, phenotypes=replace(inputs.phenotypes, site=unknown))
    rows = inputs.training(0)
    mean = inputs.features[0][rows & inputs.views[1].present, WIDE:].astype(float).mean(axis=0)
    apart = inputs.tested(0) & inputs.views[1].present
    expected = fit_scaling(inputs, 0, rows).views[1].scale * (inputs.features[0][apart, WIDE:] - mean)
    np.testing.assert_allclose(scaled(inputs, 0, rows)[apart, WIDE:], expected, rtol=1e-6, atol=1e-7)


def test_a_subject_that_lacks_a_view_has_zeros_in_it():
    inputs = inputs_with_views()
    lacking = ~inputs.views[1].present
    found = scaled(inputs, 0, inputs.training(0))
    assert lacking.any()
    assert (found[lacking, WIDE:] == 0).all()
    assert (found[~lacking, WIDE:] != 0).any(axis=1).all()


def test_a_view_that_no_training_subject_has_is_zero_and_leaves_the_other_alone():
    inputs = inputs_with_views()
    rows = inputs.training(0)
    nobody = replace(inputs.views[1], present=inputs.tested(0))
    found = scaled(replace(inputs, views=(inputs.views[0], nobody)), 0, rows)
    assert np.isfinite(found).all()
    assert (found[:, WIDE:] == 0).all()
    np.testing.assert_array_equal(found[:, :WIDE], scaled(inputs, 0, rows)[:, :WIDE])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("standardise", [True, False])
def test_a_column_that_is_constant_in_training_has_no_effect(dtype, standardise):
    inputs = inputs_with_views(centre="all", standardise=standardise, clip=None)
    features = inputs.features[0].astype(dtype)
    features[inputs.training(0), WIDE] = dtype(0.1)
    found = scaled(replace(inputs, features=(features,)), 0, inputs.training(0))
    assert np.abs(found[inputs.training(0) & inputs.views[1].present, WIDE]).max() < 1e-12
    if standardise:
        assert (found[:, WIDE] == 0).all()


def test_values_beyond_the_limit_are_cut_before_the_views_are_balanced():
    inputs = inputs_with_views(centre="all", standardise=True, clip=1.0)
    thickness = fit_scaling(inputs, 0, inputs.training(0)).views[1]
    values = scaled(inputs, 0, inputs.training(0))[:, WIDE:] / thickness.scale
    assert np.abs(values).max() == pytest.approx(1.0)
    assert (np.isclose(np.abs(values), 1.0)).sum() > 10


@pytest.mark.parametrize("standardise", [True, False])
def test_features_of_one_view_are_centred_and_of_mean_squared_norm_one(standardise):
    inputs = method_inputs(SUBJECTS, dimensions=7)
    rows = inputs.training(0)
    values = inputs.features[0].astype(float)
    expected = values - values[rows].mean(axis=0)
    if standardise:
        expected /= values[rows].std(axis=0)
    expected /= np.sqrt(np.mean(np.square(expected[rows]).sum(axis=1)))
    found = fit_scaling(inputs, 0, rows, standardise=standardise).of_subjects(inputs, 0)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_one_institution_may_fit_its_own_scaling():
    inputs = inputs_with_views()
    rows = inputs.training(0) & (inputs.institution == 1)
    np.testing.assert_allclose(scaled(inputs, 0, rows), scaled_plainly(inputs, 0, rows), rtol=1e-10, atol=1e-10)


def test_rows_that_are_tested_or_absent_are_refused():
    inputs = inputs_with_views()
    for rows in (np.ones(SUBJECTS, dtype=bool), np.zeros(SUBJECTS, dtype=bool)):
        with pytest.raises(ValueError, match="training subjects of the fold"):
            fit_scaling(inputs, 0, rows)
