"""The common training driver, whatever the engine."""

from dataclasses import replace

import numpy as np
import pytest

from brainfed.engines._training import FOLD_AXIS, _joined
from brainfed.runtime import UserError
from brainfed.samples import Outcome
from support.samples.method_inputs import method_inputs
from support.samples.quick_methods import METHOD_OF, in_tiers, read_by, train

TRAINED = [variant for variant, method in METHOD_OF.items() if method.family in ("federated", "graph")]


@pytest.mark.parametrize("variant", in_tiers(TRAINED))
def test_a_fold_without_training_subjects_is_refused(variant):
    inputs = method_inputs(30, 15)
    hidden = np.arange(inputs.folds)[:, None] == 1
    untrained = read_by(variant, replace(inputs, labels=np.where(hidden, -1, inputs.labels)))
    with pytest.raises(UserError, match="Fold 1: expected training subjects with a diagnosis, found none"):
        train(variant, untrained)


def test_outcomes_of_consecutive_folds_are_joined_along_the_folds():
    """Every array of an outcome, but for those of linear models, is joined."""
    linear = {"patterns", "contributions"}
    arrays = {name for name, each in Outcome.__annotations__.items() if "ndarray" in str(each).lower()} - linear
    assert FOLD_AXIS.keys() == arrays

    def part(fold):
        return {name: np.full((2,) * axis + (1, 3), fold, dtype=float) for name, axis in FOLD_AXIS.items()}

    rows = ({"name": "weight-0"},)
    first = Outcome(kind="probability", counts={"rounds": 2}, crossings=rows, models=("a",), **part(0))
    found = _joined([first, Outcome(kind="probability", models=("b",), **part(1))])
    for name, axis in FOLD_AXIS.items():
        joined = np.moveaxis(getattr(found, name), axis, 0)
        assert [set(each.ravel()) for each in joined] == [{0.0}, {1.0}]
    assert (found.counts, found.crossings, found.models) == ({"rounds": 2}, rows, ("a", "b"))
