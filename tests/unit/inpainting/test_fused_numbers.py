"""Numbers and parents of generated nodes."""

import numpy as np
import pytest

from brainfed.inpainting.fusing.fuse import fuse
from brainfed.inpainting.settings import FusingSettings
from brainfed.runtime.errors import UserError
from support.samples.fake_generator import NO_CAP, FakeGenerator, inputs_of, line


def test_numbers_are_rounded_and_capped_and_nodes_drawn_once_in_order():
    # Institution 0 has four subjects and wants 2 + 1 + 0 + 0; institution 1 has two and wants 3 + 1, cut to 1 of 2.
    inputs = inputs_of(np.arange(6.0)[:, None], [0, 0, 0, 0, 1, 1])
    generator = FakeGenerator([1.6, 0.7, 0.2, 0.0, 9.0, 1.0], np.zeros((9, 1)))
    fused = fuse(inputs, generator, FusingSettings(cap=0.8), max_generated=3)
    assert generator.requests == [[0, 0, 1, 4]]
    assert fused.parent.tolist() == [0, 0, 1, 4]
    assert fused.institution.tolist() == [0, 0, 0, 1]
    assert fused.count.tolist() == [1.6, 0.7, 0.2, 0.0, 9.0, 1.0]


def test_truncating_gives_fewer():
    inputs, generator = line(0, 1, 3, number=[1.9, 0.9, 0], features=[0])
    assert fuse(inputs, generator, FusingSettings(rounding="truncate"), max_generated=10).parent.tolist() == [0]


def test_an_institution_without_training_subjects_gets_no_nodes():
    features, institution = np.arange(6.0)[:, None], [0, 0, 0, 1, 1, 1]
    inputs = inputs_of(features, institution, fitted=np.arange(6) < 3)
    fused = fuse(inputs, FakeGenerator([1, 0, 0, 5, 5, 5], np.array([[1.0]])), NO_CAP, max_generated=10)
    assert fused.institution.tolist() == [0]


@pytest.mark.parametrize("what", ["count", "features"])
def test_the_error_of_a_diverged_generator_names_the_subject(what):
    inputs, generator = line(0, 1, 3, number=[0, 1, 1], features=[1, 2])
    if what == "count":
        generator.number[2] = np.nan
    else:
        generator.features[1] = np.inf
    with pytest.raises(UserError, match=r"sub-02.*diverged; lower `learning_rate`"):
        fuse(inputs, generator, NO_CAP, max_generated=10)
