"""Where new scans lie: marks of training subjects alone hold for scans that no model has seen."""

from statistics import NormalDist

import numpy as np
import pytest

from brainfed.prediction.distances import FAR, ScanLengths, distance_of, spread_of
from brainfed.samples.standardise import training_moments

DIMENSIONS, FOLDS = 3000, 5
MARK = NormalDist().inv_cdf(0.95)
"""Beyond it lie 5 of 100 numbers of a normal distribution."""


def z_scores(rows, training):
    mean, deviation = training_moments(rows, training)
    return np.linalg.norm((rows - mean) / deviation, axis=1)


def lengths(rows):
    """Of all subjects of one institution, by the models of five folds that are scaled on its own subjects."""
    fold = np.arange(len(rows)) % FOLDS
    by_fold = [z_scores(rows, fold != number) for number in range(FOLDS)]
    held_out = np.concatenate([found[fold == number] for number, found in enumerate(by_fold)])
    training = np.concatenate([found[fold != number] for number, found in enumerate(by_fold)])
    return ScanLengths(held_out, training, FOLDS, len(rows))


def scans(rng, count):
    """Scans that differ in the size of all features, as those of people do, among independent ones."""
    return rng.standard_normal((count, DIMENSIONS)) * np.exp(0.1 * rng.standard_normal((count, 1)))


@pytest.fixture(scope="module")
def found():
    """Distances of new scans of institutions of 12, 25 and 60 subjects; the same by held-out subjects as they are."""
    distances, plain = [[] for _ in range(3)], [[] for _ in range(3)]
    for draw in range(12):
        rng = np.random.default_rng(draw)
        training = [scans(rng, count) for count in (12, 25, 60)]
        spread = spread_of([lengths(rows) for rows in training])
        for code, rows in enumerate(training):
            new = scans(rng, 40)
            every = z_scores(np.concatenate([rows, new]), np.arange(len(rows) + len(new)) < len(rows))
            distances[code] += [distance_of(length, spread, code) for length in every[len(rows) :]]
            plain[code] += list((every[len(rows) :] - lengths(rows).held_out.mean()) / spread["sd"])
    return [np.array(each) for each in distances], [np.array(each) for each in plain]


def test_new_scans_lie_about_zero_at_small_and_large_institutions(found):
    assert max(abs(own.mean()) for own in found[0]) < 0.2
    assert found[1][0].mean() < -0.4


def test_new_scans_lie_beyond_a_mark_as_often_as_it_says(found):
    every = np.concatenate(found[0])
    assert 0.03 < (every > MARK).mean() < 0.08
    assert (np.abs(every) > FAR).mean() < 0.015


def test_marks_of_the_training_subjects_themselves_would_be_passed_by_nearly_every_new_scan():
    rng = np.random.default_rng(1)
    rows, new = rng.standard_normal((25, DIMENSIONS)), rng.standard_normal((40, DIMENSIONS))
    every = z_scores(np.concatenate([rows, new]), np.arange(65) < 25)
    assert (every[25:] > np.quantile(every[:25], 0.95)).mean() > 0.9
    spread = spread_of([lengths(rows)])
    assert np.mean([distance_of(length, spread, None) > 3 for length in every[25:]]) < 0.1


def test_a_place_without_held_out_subjects_has_the_mean_of_the_others():
    rows = np.random.default_rng(2).standard_normal((20, 50))
    nobody = ScanLengths(np.empty(0), np.empty(0), FOLDS, 0)
    spread = spread_of([lengths(rows), nobody])
    assert spread["means"][1] == pytest.approx(spread["means"][0])
    assert spread["subjects"] == 20


def test_scans_beyond_are_counted():
    held_out = np.array([*np.tile([9.0, 11.0], 20), 40.0])
    assert spread_of([ScanLengths(held_out, held_out, 5, 41)])["beyond"] == 1


def test_a_model_that_scales_all_alike_has_one_mean_for_every_institution():
    spread = {"means": [10.0], "sd": 2.0}
    assert distance_of(14.0, spread, None) == distance_of(14.0, spread, 3) == 2.0
    assert distance_of(14.0, {"means": [10.0, 20.0], "sd": 2.0}, 1) == -3.0
