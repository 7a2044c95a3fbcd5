"""Kept models: every method that declares one scores the tested subjects of a fold as its training did."""

import numpy as np
import pytest

from brainfed.methods import METHODS
from brainfed.runtime import resolve
from brainfed.runtime.jobs import Run
from brainfed.samples import FittedModel, score_at
from support.samples.method_inputs import method_inputs
from support.samples.quick_methods import fields_of

SUBJECTS, INSTITUTIONS = 43, 3
NAMES = [name for name, method in METHODS.items() if method.capabilities.model]
DIFFERENT = {
    "plain": {},
    "raw": {"standardise": "none"},
    "local": {"training": "local"},
    "averaged": {"solver": "fedavg"},
    "centred": {"centre": "subject"},
}
CASES = [
    (name, kind) for name in NAMES for kind, further in DIFFERENT.items() if further.keys() <= fields_of(METHODS[name])
]


FURTHER = pytest.mark.full("Every setting is tried with three classes where every institution trains.")
OTHERS = ("random", 2), ("leave-one-site-out", 3)


def settings_of(name: str, **further: object):
    return METHODS[name].settings(**{**METHODS[name].quick, **further})


def inputs_of(split: str, classes: int):
    diagnosis = None if classes == 2 else np.arange(SUBJECTS) // INSTITUTIONS % classes
    return method_inputs(SUBJECTS, 20, INSTITUTIONS, 3, split=split, diagnosis=diagnosis)


@pytest.mark.parametrize(
    ("name", "kind", "split", "classes"),
    [
        *((*case, "random", 3) for case in CASES),
        *(pytest.param(*case, "leave-one-site-out", 2, marks=[] if case[1] == "plain" else FURTHER) for case in CASES),
        *(pytest.param(*case, *other, marks=FURTHER) for case in CASES for other in OTHERS),
    ],
)
def test_a_kept_model_gives_the_scores_of_its_fold_and_has_no_axis_of_subjects(name, kind, split, classes):
    method, inputs, settings = METHODS[name], inputs_of(split, classes), settings_of(name, **DIFFERENT[kind])
    outcome = resolve(method.entry)(inputs, settings, Run(keeps_models=True))
    assert len(outcome.models) == inputs.folds
    for fold, model in enumerate(outcome.models):
        assert not any(SUBJECTS in array.shape for array in (*model.shared.values(), *model.own.values()))
        for code in range(INSTITUTIONS):
            own = inputs.tested(fold) & (inputs.institution == code)
            if own.any():
                found = score_at(
                    model, code, inputs.fold_features(fold)[own], vars(settings), resolve(method.capabilities.model)
                )
                np.testing.assert_allclose(found.scores, outcome.scores[fold, own], rtol=0, atol=2e-6)
                assert found.rows.shape == (own.sum(), 20)


@pytest.mark.parametrize("name", NAMES)
def test_a_run_that_keeps_no_models_returns_none(name):
    outcome = resolve(METHODS[name].entry)(inputs_of("random", 2), settings_of(name), Run())
    assert outcome.models == ()


def test_a_choice_on_inner_folds_returns_no_models():
    outcome = resolve(METHODS["fedmlp"].entry)(
        inputs_of("random", 2), settings_of("fedmlp", choose="inner", weight_decays=(0.0, 0.1)), Run(keeps_models=True)
    )
    assert outcome.models == ()
    assert METHODS["fedmlp"].capabilities.without_model == {"choose": "inner"}


def test_an_institution_without_a_model_is_scored_by_the_mean_of_all_others():
    own = np.array([[1.0], [np.nan], [5.0]])
    model = FittedModel({"shift": np.array([1.0])}, {"slope": own})

    def score(arrays, features, settings):
        from brainfed.samples import Scored

        return Scored(features * arrays["slope"] + arrays["shift"], features)

    features = np.array([[2.0]], dtype=np.float32)
    assert score_at(model, 0, features, {}, score).scores == [[3.0]]
    assert score_at(model, 1, features, {}, score).scores == [[7.0]]
