"""Tangent features of known matrices; an institution's training subjects alone fit its reference."""

import numpy as np
import pytest
from nilearn.connectome import ConnectivityMeasure
from scipy.linalg import expm
from sklearn.covariance import LedoitWolf

from brainfed.imaging.connectivity import to_matrices
from brainfed.imaging.fitted.tangent import displacement, tangent_features, tangent_ledger
from brainfed.imaging.series.standardise import standardised

SUBJECTS = tuple(f"s{i}" for i in range(9))
INSTITUTION = ("a",) * 4 + ("b",) * 4 + ("c",)
TRAINING = np.array([True, True, True, False] * 2 + [False])
UPPER = np.triu_indices(5, 1)


def series(seed, regions=5, time=60):
    random = np.random.default_rng(seed)
    return (random.standard_normal((time, regions)) @ random.standard_normal((regions, regions))).astype(np.float32)


def cohort():
    return {subject: series(seed) for seed, subject in enumerate(SUBJECTS)}


def fitted(data, subjects, institution, training, ledger=None):
    regions = next(iter(data.values())).shape[1]
    return tangent_features(data, subjects, institution, training, ledger or tangent_ledger(regions))


def covariance(values):
    return LedoitWolf().fit(standardised(values)).covariance_


def test_the_displacement_of_known_matrices_is_recovered():
    # Reference diag(4, 1): W = diag(1/2, 1). C = W^-1 exp(V) W^-1 must give V back.
    vector = np.array([[0.3, -0.2], [-0.2, 0.7]])
    away = np.diag([2.0, 1.0])
    assert displacement(away @ expm(vector) @ away, np.diag([0.5, 1.0])) == pytest.approx(vector)
    assert displacement(np.diag([4.0, 1.0]), np.diag([0.5, 1.0])) == pytest.approx(np.zeros((2, 2)))


def test_two_regions_by_hand():
    # Unit diagonals commute: the geometric mean of [[1, r], [r, 1]] has eigenvalues sqrt((1+r)(1+s)) and
    # sqrt((1-r)(1-s)); the displacement's off-diagonal is half the difference of the log eigenvalues.
    pair = {"one": series(1, 2), "two": series(2, 2)}
    r, s = (covariance(values)[0, 1] for values in pair.values())
    features = fitted(pair, ("one", "two"), ("a", "a"), np.array([True, True]))
    expected = 0.25 * (np.log((1 + r) / (1 + s)) - np.log((1 - r) / (1 - s)))
    assert features[:, 0] == pytest.approx([expected, -expected], abs=1e-5)


def test_one_institution_is_nilearns_tangent_space():
    data = cohort()
    values = [standardised(one) for one in data.values()]
    measure = ConnectivityMeasure(LedoitWolf(), kind="tangent", standardize=False).fit(values[:6])
    expected = measure.transform(values)[(slice(None), *UPPER)]
    features = fitted(data, SUBJECTS, ("a",) * 9, np.arange(9) < 6)
    assert features.dtype == np.float32
    assert np.abs(features - expected).max() < 1e-5


def test_a_test_subject_moves_no_other_row():
    before = fitted(cohort(), SUBJECTS, INSTITUTION, TRAINING)
    for tested in np.flatnonzero(~TRAINING):
        after = fitted({**cohort(), SUBJECTS[tested]: series(99)}, SUBJECTS, INSTITUTION, TRAINING)
        others = np.arange(9) != tested
        assert np.array_equal(before[others], after[others])
        assert not np.allclose(before[tested], after[tested])


def test_a_training_subject_moves_its_own_institution_only():
    before = fitted(cohort(), SUBJECTS, INSTITUTION, TRAINING)
    after = fitted({**cohort(), "s0": series(99)}, SUBJECTS, INSTITUTION, TRAINING)
    assert not np.allclose(before[:4], after[:4])
    assert np.array_equal(before[4:8], after[4:8])


def test_an_unseen_institution_uses_the_mean_of_the_references():
    # One training subject an institution: each reference is that subject's covariance.
    training = np.array([True, False, False, False] * 2 + [False])
    features = fitted(cohort(), SUBJECTS, INSTITUTION, training)
    mean = (covariance(cohort()["s0"]) + covariance(cohort()["s4"])) / 2
    values, vectors = np.linalg.eigh(mean)
    expected = displacement(covariance(cohort()["s8"]), (vectors / np.sqrt(values)) @ vectors.T)
    assert features[8] == pytest.approx(expected[UPPER], abs=1e-5)
    assert features[[0, 4]] == pytest.approx(np.zeros((2, 10)), abs=1e-5)


@pytest.mark.parametrize("silent", [0.0, 7.0, np.nan])
def test_a_region_without_signal_leaves_everything_finite(silent):
    data = cohort()
    data["s0"] = data["s0"].copy()
    data["s0"][:, 2] = silent
    features = fitted(data, SUBJECTS, INSTITUTION, TRAINING)
    assert np.isfinite(features).all()
    constant = {**cohort(), "s0": np.where(np.arange(5) == 2, 0, cohort()["s0"]).astype(np.float32)}
    assert np.array_equal(features, fitted(constant, SUBJECTS, INSTITUTION, TRAINING))


def test_more_regions_than_time_points_are_accepted():
    data = {f"s{i}": series(i, regions=30, time=20) for i in range(4)}
    features = fitted(data, tuple(data), ("a",) * 4, np.array([True, True, True, False]))
    assert np.isfinite(to_matrices(features, diagonal=0)).all()


def test_a_fit_without_training_subjects_is_refused():
    with pytest.raises(ValueError, match="at least one training subject"):
        fitted(cohort(), SUBJECTS, INSTITUTION, np.zeros(9, dtype=bool))


def test_the_ledger_records_the_references_for_an_unseen_institution():
    ledger = tangent_ledger(5)
    fitted(cohort(), SUBJECTS, INSTITUTION, TRAINING, ledger)
    found = [(row["direction"], row["to"], row["institutions"], row["tensors"], row["bytes"]) for row in ledger.rows()]
    assert found == [
        ("download", "institutions", "2", 2, 2 * 5 * 5 * 8), ("upload", "institutions", "0 1", 2, 2 * 5 * 5 * 8)
    ]  # fmt: skip
    assert {(row["stage"], row["name"]) for row in ledger.rows()} == {("features", "tangent-reference")}


@pytest.mark.parametrize("size", [4, 5, 6])
def test_an_unseen_site_of_as_many_subjects_as_regions_receives_a_reference(size):
    people = tuple(f"s{i}" for i in range(4 + size))
    data = {subject: series(seed) for seed, subject in enumerate(people)}
    ledger = tangent_ledger(5)
    features = fitted(data, people, ("a",) * 4 + ("b",) * size, np.arange(4 + size) < 4, ledger)
    assert np.isfinite(features).all()
    assert {row["bytes"] for row in ledger.rows()} == {5 * 5 * 8}


def test_no_reference_crosses_if_every_institution_has_training_subjects():
    ledger = tangent_ledger(5)
    fitted(cohort(), SUBJECTS, INSTITUTION, np.arange(9) % 4 != 3, ledger)
    assert ledger.rows() == ()
