"""Every method under a split with one test set: it equals the first fold of several, and needs no second class."""

from dataclasses import replace

import numpy as np
import pytest

from brainfed.samples import PublicSeriesInputs, check, history_table, predictions_table
from support.samples.method_inputs import diagnosis_of, method_inputs
from support.samples.quick_methods import METHOD_OF, first_of_each, in_tiers, method_and_topology, read_by, train

every_method = pytest.mark.parametrize("name", in_tiers(first_of_each(METHOD_OF, method_and_topology)))


def inputs_of(name, **changes):
    """Three folds of 45 subjects, of graphs, or of region series."""
    return read_by(name, method_inputs(45, 28, **changes))


def with_one_test_set(inputs):
    """The first fold is tested, all others train."""
    public = {"public": inputs.public[:1]} if isinstance(inputs, PublicSeriesInputs) else {}
    return replace(inputs, fold=np.where(inputs.fold == 0, 0, -1), labels=inputs.labels[:1], **public)


@every_method
def test_one_test_set_is_scored_like_the_first_of_several_folds(name):
    inputs = inputs_of(name)
    several, single = train(name, inputs), train(name, with_one_test_set(inputs))
    assert single.scores.shape == (1, *several.scores.shape[1:])
    np.testing.assert_allclose(single.scores[0], several.scores[0], rtol=1e-4, atol=1e-5)


@every_method
def test_those_who_only_train_have_no_score(name):
    truth, inputs = diagnosis_of(inputs_of(name)), with_one_test_set(inputs_of(name))
    found = train(name, inputs)
    check(inputs, found)
    table = predictions_table(inputs, found, truth)
    assert table["subject"].tolist() == [inputs.subjects[place] for place in np.flatnonzero(inputs.fold == 0)]
    history = history_table(inputs, found, truth)
    assert set(history["fold"]) <= {0} and history["test_accuracy"].notna().all()


@every_method
def test_training_subjects_of_one_class_in_an_institution_stop_nothing(name):
    inputs = inputs_of(name, diagnosis=np.where(np.arange(45) % 3 == 0, 0, np.arange(45) // 3 % 2))
    inputs = with_one_test_set(inputs)
    own = inputs.institution == 0
    assert set(inputs.labels[0, own]) == {-1, 0}
    check(inputs, train(name, inputs))
