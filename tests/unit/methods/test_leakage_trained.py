"""What the gradient-trained methods may not see, under both protocols and both ways of testing."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student

from brainfed.evaluation import auc
from brainfed.samples import check
from support.samples.method_inputs import balanced, diagnosis_of, method_inputs, scrambled
from support.samples.quick_methods import (
    METHOD_OF,
    first_of_each,
    in_tiers,
    in_tiers_by_split,
    is_solved,
    outcome_of,
    read_by,
    topology_of,
)

TRAINED = first_of_each([name for name in METHOD_OF if not is_solved(name)], lambda name: METHOD_OF[name].name)
ON_FEATURES = [name for name in TRAINED if "features" in METHOD_OF[name].needs]
OTHERS = [name for name in TRAINED if name not in ON_FEATURES]
PERMUTATIONS = 15
every_method = pytest.mark.parametrize("name", in_tiers(ON_FEATURES))
both_protocols = pytest.mark.parametrize("protocol", ["transductive", "inductive"])
both_splits = pytest.mark.parametrize("split", ["random", "leave-one-site-out"])


@every_method
@both_protocols
@both_splits
def test_labels_of_tested_subjects_reach_no_prediction_of_their_fold(name, protocol, split):
    inputs = method_inputs(36, 28, folds=2, split=split, protocol=protocol)
    before = outcome_of(name, inputs)
    check(read_by(name, inputs), before)
    for fold in range(inputs.folds):
        after = outcome_of(name, scrambled(inputs, fold))
        assert after.scores[fold].tobytes() == before.scores[fold].tobytes()
        if before.round_scores is not None:
            assert after.round_scores[:, fold].tobytes() == before.round_scores[:, fold].tobytes()
        if before.member_scores is not None:
            assert after.member_scores[fold].tobytes() == before.member_scores[fold].tobytes()
        others = np.arange(inputs.folds) != fold
        assert (after.scores[others] != before.scores[others]).any(where=np.isfinite(before.scores[others]))


@pytest.mark.parametrize(("name", "split"), in_tiers_by_split(OTHERS))
def test_labels_of_tested_subjects_reach_no_prediction_from_graphs_or_series(name, split):
    """Their own graphs and series are tried in `test_gin`, `test_fglbc` and `test_gahfl`."""
    test_labels_of_tested_subjects_reach_no_prediction_of_their_fold(name, "transductive", split)


@every_method
@both_splits
def test_features_of_a_tested_subject_move_its_own_inductive_prediction_only(name, split):
    inputs = method_inputs(60, 100, folds=3, split=split, protocol="inductive")
    before = outcome_of(name, inputs).scores[..., 1][1]
    subject = int(np.flatnonzero(inputs.tested(1))[0])
    features = inputs.features[0].copy()
    features[subject] = 3 - 2 * features[subject]
    changed = method_inputs(60, 100, folds=3, split=split, protocol="inductive", features=features)
    after = outcome_of(name, replace(changed, labels=inputs.labels, fold=inputs.fold)).scores[..., 1][1]
    others = np.arange(60) != subject
    assert after[others].tobytes() == before[others].tobytes()
    assert after[subject] != before[subject]


@every_method
@pytest.mark.parametrize(
    "protocol", ["transductive", pytest.param("inductive", marks=pytest.mark.full("Their labels are turned above."))]
)
def test_permuted_labels_leave_nothing_to_learn(name, protocol):
    plain = method_inputs(60, 20, folds=3, effect=1.5)
    aucs = []
    for permutation in range(PERMUTATIONS):
        labels = balanced(plain.institution, np.random.default_rng(100 + permutation))
        null = method_inputs(
            60, 20, folds=3, diagnosis=labels, features=plain.features[0], seed=permutation, protocol=protocol
        )
        scores = outcome_of(name, null).scores[..., 1]
        tested = [null.tested(fold) for fold in range(null.folds)]
        aucs.append(np.mean([auc(labels[mask], scores[fold, mask]) for fold, mask in enumerate(tested)]))
    margin = student.ppf(0.975, PERMUTATIONS - 1) * np.std(aucs, ddof=1) / np.sqrt(PERMUTATIONS)
    assert np.mean(aucs) - margin <= 0.5 <= np.mean(aucs) + margin


@every_method
def test_an_effect_is_found(name):
    inputs = method_inputs(90, 20, effect=1.5, seed=0)
    truth, outcome = diagnosis_of(inputs), outcome_of(name, inputs)
    scores = outcome.scores[..., 1][inputs.fold, np.arange(90)]
    assert auc(truth, scores) > 0.6


def test_crossings_are_declared_by_the_method():
    for name in ON_FEATURES:
        outcome = outcome_of(name, method_inputs(60))
        names = {row["name"] for row in outcome.crossings}
        declared = METHOD_OF[name].crossing.tensors
        assert names <= set(declared)
        with_people = {row["name"] for row in outcome.crossings if "subjects" in str(row["axes"])}
        assert with_people == {each for each, axes in declared.items() if "subjects" in axes}
        assert (topology_of(name) == "local") <= (outcome.crossings == ())


def test_a_site_without_training_subjects_is_helped_by_declared_tensors():
    inputs = method_inputs(60, 30, institutions=3, split="leave-one-site-out")
    tensors = {row["name"]: row["tensors"] for row in outcome_of("localgcn", inputs).crossings}
    assert tensors["feature-mean"] == tensors["weight-0"] == 2
    assert tensors.keys() == METHOD_OF["localgcn"].crossing.tensors.keys()
    by_fold = {(row["name"], row["direction"]): row["tensors"] for row in outcome_of("fedmlp", inputs).crossings}
    assert by_fold["weight-0", "upload"] == 3 * 2
    assert by_fold["weight-0", "download"] == 3 * 2 + 1
    assert by_fold["feature-sd", "upload"] == 2
