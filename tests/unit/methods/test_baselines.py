from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from brainfed.methods.baselines.declaration import MajoritySettings, MotionSettings, PhenotypeSettings
from brainfed.methods.baselines.train import majority, motion, phenotype
from brainfed.runtime import UserError
from brainfed.runtime.jobs import Run
from brainfed.samples import hidden_labels
from support.samples.method_inputs import diagnosis_of, method_inputs, relabelled

BASELINES = {
    "majority": (majority, MajoritySettings()),
    "phenotype": (phenotype, PhenotypeSettings()),
    "motion": (motion, MotionSettings()),
}


def scores_of(name, inputs):
    entry, settings = BASELINES[name]
    return entry(inputs, settings, Run()).scores[..., 1]


def with_phenotypes(inputs, **columns):
    return replace(inputs, phenotypes=replace(inputs.phenotypes, **columns))


def pooled_auc(inputs, scores):
    diagnosis = diagnosis_of(inputs)
    tested = [inputs.tested(fold) for fold in range(inputs.folds)]
    return np.mean([roc_auc_score(diagnosis[rows], scores[fold, rows]) for fold, rows in enumerate(tested)])


def six_subjects():
    """Institutions of 4 and 2; subjects 0 and 4 are tested in fold 0, the others in fold 1."""
    inputs = method_inputs(subjects=6, institutions=1, folds=2)
    fold = np.array([0, 1, 1, 1, 0, 1])
    return replace(
        inputs,
        institutions=("a", "b"),
        institution=np.array([0, 0, 0, 0, 1, 1]),
        fold=fold,
        labels=hidden_labels(np.array([0, 1, 1, 0, 0, 1]), fold),
    )


def test_majority_is_the_share_of_patients_among_the_institutions_training_subjects():
    scores = scores_of("majority", six_subjects())
    nan = np.nan
    # Fold 0 trains on patients 1, 2 and control 3 of a, and patient 5 of b; fold 1 on controls 0 and 4.
    np.testing.assert_allclose(scores, [[2 / 3, nan, nan, nan, 1, nan], [nan, 0, 0, 0, nan, 0]])


def test_majority_of_an_institution_without_training_subjects_is_the_mean_of_the_others():
    inputs = method_inputs(split="leave-one-site-out")
    diagnosis = np.where(inputs.institution == 1, np.arange(60) % 4 == 0, inputs.institution == 2).astype(np.int64)
    outcome = majority(relabelled(inputs, diagnosis), MajoritySettings(), Run())
    shares = [diagnosis[inputs.institution == index].mean() for index in range(3)]
    assert shares == [0, 0.25, 1]
    for fold, expected in enumerate([0.625, 0.5, 0.125]):
        assert set(outcome.scores[..., 1][fold, inputs.tested(fold)].tolist()) == {expected}
    rows = outcome.crossings
    assert [(row["direction"], row["institutions"]) for row in rows] == [("download", "0"), ("upload", "1 2")]
    assert {(row["name"], row["tensors"], row["bytes"]) for row in rows} == {("prevalence", 2, 16)}


def test_majority_sends_nothing_where_every_institution_trains():
    assert majority(method_inputs(), MajoritySettings(), Run()).crossings == ()


@pytest.mark.parametrize("column", ["site", "sex", "age"])
def test_phenotype_learns_from_each_of_its_columns(column):
    inputs = method_inputs(subjects=120, seed=3)
    diagnosis = diagnosis_of(inputs)
    assert pooled_auc(inputs, scores_of("phenotype", inputs)) < 0.65
    values = {"site": diagnosis + 4, "sex": diagnosis, "age": 20.0 + diagnosis}[column]
    informative = with_phenotypes(inputs, **{column: values})
    assert pooled_auc(informative, scores_of("phenotype", informative)) == 1


def test_site_is_a_category_not_a_number():
    inputs = method_inputs(subjects=120)
    diagnosis = diagnosis_of(inputs)
    middle = np.where(diagnosis == 1, 5, np.where(np.arange(120) % 2 == 0, 4, 6))
    informative = with_phenotypes(inputs, site=middle)
    assert pooled_auc(informative, scores_of("phenotype", informative)) == 1


def test_unknown_age_counts_as_the_training_mean_and_as_unknown():
    inputs = method_inputs(subjects=120)
    diagnosis = diagnosis_of(inputs)
    unknown = with_phenotypes(inputs, age=np.where(diagnosis == 1, np.nan, inputs.phenotypes.age))
    assert pooled_auc(unknown, scores_of("phenotype", unknown)) > 0.95
    # Nobody is unknown in training: the one tested subject without an age is as one of mean age.
    rows = inputs.training(0)
    subject = int(np.flatnonzero(inputs.tested(0))[0])
    age = inputs.phenotypes.age.copy()
    age[subject] = np.nan
    mean = age.copy()
    mean[subject] = age[rows].mean()
    pair = [scores_of("phenotype", with_phenotypes(inputs, age=values))[0, subject] for values in (age, mean)]
    assert pair[0] == pytest.approx(pair[1], rel=1e-12)


def test_site_unseen_in_training_has_no_column():
    inputs = method_inputs(split="leave-one-site-out")
    alike = with_phenotypes(inputs, sex=np.zeros(60, dtype=np.int64), age=np.full(60, 20.0))
    diagnosis = np.array([0, 1] * 30)
    scores = scores_of("phenotype", relabelled(alike, diagnosis))
    np.testing.assert_allclose(scores[np.isfinite(scores)], 0.5, atol=1e-6)


def test_motion_reads_framewise_displacement_only():
    inputs = method_inputs(subjects=120)
    moving = with_phenotypes(inputs, mean_fd=0.1 + 0.1 * diagnosis_of(inputs))
    assert pooled_auc(moving, scores_of("motion", moving)) == 1
    other = with_phenotypes(moving, site=moving.phenotypes.site + 1, sex=1 - moving.phenotypes.sex)
    assert scores_of("motion", moving).tobytes() == scores_of("motion", other).tobytes()


def test_displacement_unknown_for_all_subjects_has_no_information():
    inputs = with_phenotypes(method_inputs(folds=5), mean_fd=np.full(60, np.nan))
    scores = scores_of("motion", inputs)
    np.testing.assert_allclose(scores[np.isfinite(scores)], 0.5, atol=1e-6)


@pytest.mark.parametrize("name", BASELINES)
def test_training_subjects_of_one_class_give_that_class(name):
    inputs = relabelled(method_inputs(), np.ones(60, dtype=np.int64))
    scores = scores_of(name, inputs)
    assert set(scores[np.isfinite(scores)].tolist()) == {1.0}


@pytest.mark.parametrize("name", BASELINES)
def test_fold_without_training_subjects_is_the_users_to_mend(name):
    with pytest.raises(UserError, match=r"Fold 0: expected training subjects .* found none"):
        scores_of(name, method_inputs(institutions=1, split="leave-one-site-out"))


def test_pooled_columns_are_on_the_record():
    rows = phenotype(method_inputs(), PhenotypeSettings(), Run()).crossings
    assert {row["axes"] for row in rows} == {"subjects"}
    sent = {"age": 60 * 8, "labels": 60, "sex": 60, "site": 60 * 2}
    assert {row["name"]: row["bytes"] for row in rows} == sent
    rows = motion(method_inputs(), MotionSettings(), Run()).crossings
    assert [(row["name"], row["bytes"]) for row in rows] == [("labels", 60), ("mean_fd", 60 * 8)]
