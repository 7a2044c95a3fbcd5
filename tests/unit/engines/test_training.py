"""The common training driver, whatever the engine."""

from dataclasses import replace

import numpy as np
import pytest

from brainfed.runtime.errors import UserError
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
