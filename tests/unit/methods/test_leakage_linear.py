"""No tested subject's label, and no other tested subject's features, reach a prediction."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student

from brainfed.evaluation import auc
from support.samples.method_inputs import balanced, diagnosis_of, method_inputs, scrambled
from support.samples.quick_methods import METHOD_OF, in_tiers, is_solved, outcome_of

VARIANTS = [name for name in METHOD_OF if is_solved(name)]
READING_FEATURES = [name for name in VARIANTS if METHOD_OF[name].needs]
COLUMNS = [(name, column) for name in VARIANTS for column in METHOD_OF[name].phenotypes]
PERMUTATIONS = 15
every_variant = pytest.mark.parametrize("variant", in_tiers(VARIANTS))
both_splits = pytest.mark.parametrize("split", ["random", "leave-one-site-out"])


def scores_of(variant, inputs):
    return outcome_of(variant, inputs).scores[..., 1]


def one_third_patients():
    """(45,) labels whose turning round in any fold changes every institution's share of patients."""
    return (np.arange(45) // 3 % 3 == 0).astype(np.int64)


@every_variant
@both_splits
def test_labels_of_tested_subjects_reach_no_prediction_of_their_fold(variant, split):
    inputs = method_inputs(45, 20, folds=2, split=split, diagnosis=one_third_patients())
    before = scores_of(variant, inputs)
    for fold in range(inputs.folds):
        after = scores_of(variant, scrambled(inputs, fold))
        assert after[fold].tobytes() == before[fold].tobytes()
        others = np.arange(inputs.folds) != fold
        assert all((after[others] != before[others]).any(axis=1, where=np.isfinite(before[others])))


@pytest.mark.parametrize("variant", in_tiers(READING_FEATURES))
@pytest.mark.parametrize("size", [(60, 30), (60, 150)])
@both_splits
def test_features_of_a_tested_subject_move_its_own_prediction_only(variant, size, split):
    subjects, dimensions = size
    inputs = method_inputs(subjects, dimensions, folds=2, split=split)
    before = scores_of(variant, inputs)[1]
    tested = np.flatnonzero(inputs.tested(1))
    for subject in tested[[0, -1]]:
        features = inputs.features[0].copy()
        features[subject] = 3 - 2 * features[subject]
        after = scores_of(variant, replace(inputs, features=(features,)))[1]
        others = np.arange(subjects) != subject
        assert after[others].tobytes() == before[others].tobytes()
        assert after[subject] != before[subject]


@pytest.mark.parametrize(("variant", "column"), COLUMNS)
def test_phenotype_of_a_tested_subject_moves_its_own_prediction_only(variant, column):
    inputs = method_inputs(folds=2)
    before = scores_of(variant, inputs)[0]
    subject = int(np.flatnonzero(inputs.tested(0))[0])
    values = getattr(inputs.phenotypes, column).copy()
    values[subject] = 1 - values[subject]
    after = scores_of(variant, replace(inputs, phenotypes=replace(inputs.phenotypes, **{column: values})))[0]
    others = np.arange(60) != subject
    assert after[others].tobytes() == before[others].tobytes()
    assert after[subject] != before[subject]


@every_variant
def test_permuted_labels_are_predicted_no_better_than_by_chance(variant):
    plain = method_inputs(effect=1.0)
    means = []
    for permutation in range(PERMUTATIONS):
        labels = balanced(plain.institution, np.random.default_rng(100 + permutation))
        inputs = method_inputs(folds=2, diagnosis=labels, features=plain.features[0], seed=permutation)
        scores = scores_of(variant, inputs)
        tested = [inputs.tested(fold) for fold in range(inputs.folds)]
        means.append(np.mean([auc(labels[rows], scores[fold, rows]) for fold, rows in enumerate(tested)]))
    assert diagnosis_of(inputs).tolist() == labels.tolist()
    margin = student.ppf(0.975, PERMUTATIONS - 1) * np.std(means, ddof=1) / np.sqrt(PERMUTATIONS)
    assert np.mean(means) - margin <= 0.5 <= np.mean(means) + margin
