"""A network with centred subjects sees nothing of what all features of a subject share."""

from dataclasses import replace

import numpy as np
import pytest

from brainfed.runtime.jobs import Run
from support.samples.method_inputs import method_inputs
from support.samples.quick_methods import METHOD_OF, fields_of, first_of_each, read_by, train

NETWORKS = [name for name in METHOD_OF if {"centre", "hidden", "dropout"} <= fields_of(METHOD_OF[name])]
COLUMNS, GRID = 16, 1024
"""Multiples of 1 / 1024 in 16 columns have means that float32 holds without rounding."""


def on_grid(values):
    return np.round(values * GRID) / GRID


@pytest.mark.parametrize("name", first_of_each(NETWORKS, lambda name: METHOD_OF[name].name))
def test_a_shift_of_a_whole_subject_changes_no_score(name):
    inputs, run = method_inputs(60, COLUMNS), Run(precision="float64")
    wide = replace(inputs, features=(on_grid(inputs.features[0].astype(np.float64)),))
    shift = on_grid(4 * np.random.default_rng(5).standard_normal((60, 1)))
    wide, shifted = (read_by(name, each) for each in (wide, replace(wide, features=(wide.features[0] + shift,))))
    scores = train(name, wide, run, centre="subject").scores
    np.testing.assert_allclose(train(name, shifted, run, centre="subject").scores, scores, atol=1e-8)
    without = [train(name, each, run, centre="none").scores for each in (shifted, wide)]
    assert np.abs(without[0] - without[1])[np.isfinite(scores)].max() > 0.01
