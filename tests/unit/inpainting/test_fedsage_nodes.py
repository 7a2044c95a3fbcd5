"""Counts and nodes of trained FedSage+ generators."""

from dataclasses import replace

import numpy as np
import pytest

from brainfed.inpainting.fedsage import training as fedsage
from brainfed.inpainting.fusing.fuse import fuse
from brainfed.inpainting.scaling import scaling_of
from brainfed.inpainting.settings import FusingSettings
from brainfed.runtime.jobs.run import Run
from support.samples.fedsage_inputs import QUICK, cohort, loaded, widened


def test_counts_are_between_0_and_the_number_of_foreign_subjects():
    inputs = cohort()
    trained = fedsage.train(inputs, QUICK, Run())
    arrays = {**trained.arrays, "0/dgen.output.bias": np.array([50.0], dtype=np.float32)}
    arrays["1/dgen.output.bias"] = np.array([-50.0], dtype=np.float32)
    counts = loaded(inputs, replace(trained, arrays=arrays)).counts()
    assert set(counts[inputs.institution == 0]) == {30.0}
    assert set(counts[inputs.institution == 1]) == {0.0}
    assert ((counts >= 0) & (counts <= 30)).all()


def test_equal_parents_take_their_output_slots_in_order():
    inputs = cohort()
    generator = loaded(inputs, fedsage.train(inputs, QUICK, Run()))
    whole = generator.draw(np.array([4, 4, 4, 7, 7, 7]))
    assert whole.features.shape == (6, 6)
    assert (np.abs(whole.features) < 1).all()
    assert len({row.tobytes() for row in whole.features}) == 6
    assert whole.sex.tolist() == [-1] * 6
    assert np.isnan(whole.age).all()
    some = generator.draw(np.array([2, 7, 7]))
    np.testing.assert_allclose(some.features[1:], whole.features[3:5], atol=1e-6)


def test_generated_features_return_to_the_scale_of_the_cohort():
    wide = widened(cohort(), 1000)
    drawn = loaded(wide, fedsage.train(wide, QUICK, Run())).draw(np.repeat(np.arange(45), 3)).features
    assert np.abs(drawn[:, 0]).max() > 10
    scaling = scaling_of(wide, 0)
    assert (np.abs(drawn[wide.institution.repeat(3) == 0] - scaling.centre) <= scaling.unit * (1 + 1e-6)).all()


def test_more_neighbours_than_slots_are_refused():
    inputs = cohort()
    generator = loaded(inputs, fedsage.train(inputs, QUICK, Run()))
    with pytest.raises(ValueError, match="at most 3 generated neighbours"):
        generator.draw(np.array([4, 4, 4, 4]))


def test_test_subjects_change_nothing_and_get_no_nodes():
    fitted = np.arange(45) % 5 != 0
    inputs = cohort(fitted=fitted, part="fold-0")
    features = inputs.features.copy()
    features[~fitted] = 0.5
    changed = replace(inputs, features=features)
    before, after = fedsage.train(inputs, QUICK, Run()), fedsage.train(changed, QUICK, Run())
    assert all(before.arrays[name].tobytes() == after.arrays[name].tobytes() for name in before.arrays)
    first, second = loaded(inputs, before), loaded(changed, after)
    assert first.counts().tobytes() == second.counts().tobytes()
    assert (first.counts()[~fitted] == 0).all()
    parents = np.flatnonzero(fitted)
    assert first.draw(parents).features.tobytes() == second.draw(parents).features.tobytes()
    with pytest.raises(ValueError, match="'sub-0005' was never learnt from"):
        first.draw(np.array([5]))


def test_an_institution_without_training_subjects_has_no_generator():
    inputs = cohort()
    inputs = replace(inputs, fitted=inputs.institution != 1)
    trained = fedsage.train(inputs, QUICK, Run())
    assert {name.split("/")[0] for name in trained.arrays} == {"0", "2"}
    assert set(trained.history["institution"]) == {"site-0", "site-2"}
    assert (loaded(inputs, trained).counts()[inputs.institution == 1] == 0).all()


def test_the_generated_nodes_join_the_graph():
    inputs = cohort()
    trained = fedsage.train(inputs, QUICK, Run())
    generator = loaded(inputs, trained)
    settings = FusingSettings(cap=None, rounding="truncate", edges="binary")
    fused = fuse(inputs, generator, settings, max_generated=QUICK.targets)
    expected = np.trunc(generator.counts()).astype(int)
    assert np.bincount(fused.parent, minlength=45).tolist() == expected.tolist()
    edges = set(zip(fused.row.tolist(), fused.column.tolist(), strict=True))
    for node, parent in enumerate(fused.parent.tolist(), start=45):
        assert {(node, parent), (parent, node)} <= edges
