"""Connectivity equals numpy's and closed forms, and is 0 where undefined."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brainfed.imaging import FeatureSettings, connectivity, to_matrices
from brainfed.imaging.series import standardised
from brainfed.runtime import UserError

PEARSON = FeatureSettings()
PARTIAL = FeatureSettings(connectivity="partial")


def series(regions=6, time=80, seed=0):
    """(time, regions) float32, correlated, on different baselines and scales."""
    random = np.random.default_rng(seed)
    mixed = random.standard_normal((time, regions)) @ random.standard_normal((regions, regions))
    return (mixed * random.uniform(0.1, 50, regions) + random.uniform(-500, 500, regions)).astype(np.float32)


def test_pearson_is_the_correlation_of_numpy():
    cohort = {f"s{seed}": series(seed=seed, time=60 + seed) for seed in range(5)}
    features = connectivity(cohort, PEARSON)
    upper = np.triu_indices(6, 1)
    expected = [np.corrcoef(cohort[subject].astype(np.float64).T)[upper] for subject in sorted(cohort)]
    assert np.abs(features - expected).max() < 1e-6
    assert features.dtype == np.float32


@settings(deadline=None)
@given(st.integers(2, 12), st.integers(10, 60), st.integers(0, 1000))
def test_pearson_is_the_correlation_of_numpy_for_any_shape(regions, time, seed):
    values = series(regions, time, seed)
    expected = np.corrcoef(values.astype(np.float64).T)[np.triu_indices(regions, 1)]
    assert np.abs(connectivity({"s": values}, PEARSON)[0] - expected).max() < 1e-6


def test_three_regions_by_hand():
    # b = -a; c = (1, -2, 1) is orthogonal to a = (-1, 0, 1).
    a, c = np.array([-1.0, 0, 1]), np.array([1.0, -2, 1])
    features = connectivity({"s": np.stack([a, 5 - a, 3 * c], axis=1).astype(np.float32)}, PEARSON)
    assert features == pytest.approx(np.array([[-1, 0, 0]]), abs=1e-7)


def test_rows_are_in_ascending_order_of_id():
    cohort = {"b": series(seed=1), "a": series(seed=0)}
    features = connectivity(cohort, PEARSON)
    assert np.array_equal(features[0], connectivity({"a": cohort["a"]}, PEARSON)[0])


@settings(deadline=None)
@given(st.integers(2, 10), st.integers(1, 4))
def test_matrices_are_recovered_from_features(regions, subjects):
    features = np.random.default_rng(regions).uniform(-1, 1, (subjects, regions * (regions - 1) // 2))
    matrices = to_matrices(features)
    assert matrices.shape == (subjects, regions, regions)
    assert np.array_equal(matrices, matrices.transpose(0, 2, 1))
    assert np.array_equal(matrices[(slice(None), *np.triu_indices(regions, 1))], features)
    assert (np.diagonal(matrices, axis1=1, axis2=2) == 1).all()


def test_122_regions_have_7381_features():
    assert connectivity({"s": series(122, 20)}, PEARSON).shape == (1, 7381)


@pytest.mark.parametrize("settings", [PEARSON, PARTIAL])
@pytest.mark.parametrize("silent", [0.0, 812.3, np.nan])
def test_a_region_without_signal_has_correlation_zero_and_does_not_affect_others(settings, silent):
    whole = series(5)
    broken = np.insert(whole, 2, silent, axis=1)
    matrix = to_matrices(connectivity({"s": broken}, settings))[0]
    others = [0, 1, 3, 4, 5]
    assert (matrix[2, others] == 0).all()
    alone = to_matrices(connectivity({"s": whole}, settings))[0]
    assert np.array_equal(matrix[np.ix_(others, others)], alone)


def test_a_series_with_one_varying_region_has_zero_connectivity():
    values = np.full((20, 3), np.nan, dtype=np.float32)
    values[:, 0] = np.arange(20)
    assert (connectivity({"s": values}, PEARSON) == 0).all()


def test_fisher_z_is_artanh_and_finite_for_equal_regions():
    values = series(3)
    values[:, 2] = values[:, 0]
    raw = connectivity({"s": values}, PEARSON)
    transformed = connectivity({"s": values}, FeatureSettings(fisher_z=True))
    assert np.allclose(transformed[0, [0, 2]], np.arctanh(raw[0, [0, 2]]), atol=1e-5)
    assert np.isfinite(transformed).all()
    assert transformed[0, 1] > 8


def test_partial_correlation_of_a_chain_vanishes_between_its_ends():
    # a -> b -> c: a and c correlate through b only; shrinkage is negligible for 200,000 points.
    random = np.random.default_rng(0)
    a = random.standard_normal(200_000)
    b = a + random.standard_normal(len(a))
    c = b + random.standard_normal(len(a))
    cohort = {"s": np.stack([a, b, c], axis=1).astype(np.float32)}
    # Closed form: var(a, b, c) = 1, 2, 3; cov(a,b) = cov(a,c) = 1, cov(b,c) = 2.
    assert connectivity(cohort, PEARSON)[0] == pytest.approx([1 / 2**0.5, 1 / 3**0.5, 2 / 6**0.5], abs=0.01)
    # Precision [[2,-1,0],[-1,2,-1],[0,-1,1]]: partial ab = 1/2, ac = 0, bc = 1/sqrt(2).
    assert connectivity(cohort, PARTIAL)[0] == pytest.approx([0.5, 0, 1 / 2**0.5], abs=0.01)


def test_partial_correlation_does_not_depend_on_the_scale_of_a_region():
    values = series(time=30)
    scaled = values * np.array([1, 10, 100, 0.1, 1, 7], dtype=np.float32)
    one, other = (connectivity({"s": one}, PARTIAL) for one in (values, scaled))
    assert np.allclose(one, other, atol=1e-5)


def test_standardised_series_have_mean_zero_and_variance_one():
    values = standardised(np.insert(series(2), 1, np.nan, axis=1))
    assert np.allclose(values.mean(axis=0), 0)
    assert values.std(axis=0) == pytest.approx([1, 0, 1])


def test_subjects_with_other_regions_are_refused():
    with pytest.raises(UserError, match="Subject s2: expected 6 regions as in subject s1, found 5"):
        connectivity({"s1": series(6), "s2": series(5)}, PEARSON)


def test_the_fisher_transform_of_tangent_features_is_refused():
    with pytest.raises(ValueError, match="fisher_z: expected false with connectivity tangent"):
        FeatureSettings(connectivity="tangent", fisher_z=True)


def test_tangent_features_without_training_subjects_are_refused():
    with pytest.raises(ValueError, match=r"imaging\.tangent"):
        connectivity({"s": series()}, FeatureSettings(connectivity="tangent"))
