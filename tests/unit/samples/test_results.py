"""The tables that a hand-made outcome becomes."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from brainfed.runtime import Streams, write_table
from brainfed.samples import (
    MethodInputs,
    Outcome,
    Phenotypes,
    check,
    hidden_labels,
    history_table,
    of_two_classes,
    predictions_table,
)

NAN = np.nan
TRUTH = np.array([1, 0, 1, 0])
CURVES = ("training_loss", "test_loss", "test_accuracy")


@pytest.fixture
def inputs():
    """Subjects a, c at east and b, d at west; a and b are tested in fold 0, c and d in fold 1."""
    unknown = np.full(4, NAN)
    return MethodInputs(
        subjects=("a", "b", "c", "d"),
        institutions=("east", "west"),
        institution=np.array([0, 1, 0, 1]),
        fold=np.array([0, 0, 1, 1]),
        labels=np.array([[-1, -1, 1, 0], [1, 0, -1, -1]]),
        features=(),
        graphs=(),
        phenotypes=Phenotypes(np.zeros(4, np.int64), np.zeros(4, np.int64), unknown, unknown),
        streams=Streams(0),
    )


@pytest.fixture
def outcome():
    """Two rounds; the last one's scores are the method's."""
    rounds = np.array(
        [
            [[0.5, 0.5, NAN, NAN], [NAN, NAN, 0.5, 0.5]],
            [[0.8, 0.6, NAN, NAN], [NAN, NAN, 0.25, 0.1]],
        ]
    )
    losses = np.array([[[0.7, 0.71], [0.72, 0.73]], [[0.4, 0.41], [0.42, 0.43]]])
    scores = of_two_classes(rounds, "probability")
    return Outcome(scores[-1], "probability", scores, losses)


def test_predictions_have_one_row_a_subject(inputs, outcome):
    check(inputs, outcome)
    expected = pd.DataFrame(
        {
            "subject": ["a", "b", "c", "d"],
            "institution": ["east", "west", "east", "west"],
            "fold": [0, 0, 1, 1],
            "score": [0.8, 0.6, 0.25, 0.1],
            "kind": ["probability"] * 4,
            "label": [1, 0, 1, 0],
        }
    )
    found = predictions_table(inputs, outcome, TRUTH)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    assert (found["fold"].dtype, found["label"].dtype, found["score"].dtype) == ("int16", "int8", "float64")


def test_history_has_one_row_a_fold_institution_and_round(inputs, outcome):
    """A probability of one half calls nobody a patient: right for b and d, wrong for a and c."""
    found = history_table(inputs, outcome, TRUTH).set_index(["fold", "institution", "round"])
    assert list(found.index) == [(f, i, r) for f in (0, 1) for i in ("east", "west") for r in (1, 2)]
    half, undecided = -np.log(0.5), 0.0
    expected = {
        (0, "east", 1): (0.7, half, undecided),
        (0, "east", 2): (0.4, -np.log(0.8), 1.0),
        (0, "west", 1): (0.72, half, 1.0),
        (0, "west", 2): (0.42, -np.log(0.4), 0.0),
        (1, "east", 1): (0.71, half, undecided),
        (1, "east", 2): (0.41, -np.log(0.25), 0.0),
        (1, "west", 1): (0.73, half, 1.0),
        (1, "west", 2): (0.43, -np.log(0.9), 1.0),
    }
    for key, values in expected.items():
        np.testing.assert_allclose(found.loc[key, list(CURVES)].to_numpy(float), values)
    assert found["cluster"].isna().all()


def test_history_has_the_share_that_institutions_taught(inputs, outcome):
    assert history_table(inputs, outcome, TRUTH)["taught"].isna().all()
    taught = np.array([[0.1, 0.2], [0.0, 0.3]])
    found = history_table(inputs, replace(outcome, taught=taught), TRUTH).set_index(["fold", "institution", "round"])
    for fold, institution, number in found.index:
        assert found.loc[(fold, institution, number), "taught"] == taught[number - 1, fold]
    with pytest.raises(ValueError, match=r"expected taught shares of \(2, 2\) rounds and folds, found \(1, 2\)"):
        check(inputs, replace(outcome, taught=taught[:1]))


def test_history_has_the_cluster_of_an_institution_after_every_round(inputs, outcome, tmp_path):
    """East and west are cut apart in the second round of fold 1; a file keeps the whole numbers."""
    clusters = np.array([[[0, 0], [0, 0]], [[0, 0], [0, 1]]])
    clustered = replace(outcome, clusters=clusters)
    check(inputs, clustered)
    write_table(tmp_path / "history.parquet", history_table(inputs, clustered, TRUTH))
    found = pd.read_parquet(tmp_path / "history.parquet").set_index(["fold", "institution", "round"])["cluster"]
    assert found.dtype == "Int32"
    assert found[found == 1].index.tolist() == [(1, "west", 2)]
    with pytest.raises(ValueError, match=r"expected clusters of \(2, 2, 2\) rounds, folds and institutions"):
        check(inputs, replace(outcome, clusters=clusters[:1]))


def test_a_certain_mistake_costs_much_but_not_infinitely(inputs, outcome):
    certain = outcome.round_scores.copy()
    certain[:, 0, 0] = [1.0, 0.0]
    found = history_table(inputs, replace(outcome, round_scores=certain), TRUTH)
    np.testing.assert_allclose(found["test_loss"].iloc[0], -np.log(1e-12))


def test_the_loss_of_margins_is_the_squared_distance_from_one(inputs, outcome):
    margins = np.where(np.isfinite(outcome.round_scores), 0.25, np.nan) * np.array([-1.0, 1.0])
    found = history_table(inputs, replace(outcome, round_scores=margins, kind="margin"), TRUTH)
    patient = TRUTH[(inputs.fold == 0) & (inputs.institution == 0)]
    expected = np.mean(np.where(patient == 1, 0.75**2, 1.25**2))
    np.testing.assert_allclose(found["test_loss"].iloc[0], expected)


def test_an_institution_without_tested_subjects_in_a_fold_has_no_test_loss(inputs, outcome):
    fold = np.array([0, 1, 0, 1])
    alone = replace(inputs, fold=fold, labels=hidden_labels(TRUTH, fold))
    rounds = np.full((2, 2, 4, 2), NAN)
    rounds[:, 0, [0, 2]], rounds[:, 1, [1, 3]] = 0.5, 0.5
    found = history_table(alone, replace(outcome, scores=rounds[-1], round_scores=rounds), TRUTH)
    undefined = found[found["test_loss"].isna()]
    assert set(zip(undefined["fold"], undefined["institution"], strict=True)) == {(0, "west"), (1, "east")}
    assert found["training_loss"].notna().all()


def test_a_method_without_rounds_has_an_empty_history_with_the_same_columns(inputs, outcome):
    silent = history_table(inputs, Outcome(outcome.scores, "margin"), TRUTH)
    spoken = history_table(inputs, outcome, TRUTH)
    assert len(silent) == 0
    assert list(silent.columns) == list(spoken.columns)
    assert (silent.dtypes == spoken.dtypes).all()


@pytest.mark.parametrize(
    "broken",
    [
        np.array([[0.8, NAN, NAN, NAN], [NAN, NAN, 0.25, 0.1]]),
        np.array([[0.8, np.inf, NAN, NAN], [NAN, NAN, 0.25, 0.1]]),
        np.array([[0.8, 0.6, 0.5, NAN], [NAN, NAN, 0.25, 0.1]]),
        np.array([[0.8, 0.6, NAN, NAN]]),
        np.array([0.8, 0.6, 0.25, 0.1]),
    ],
    ids=["unscored", "infinite", "scored outside its fold", "a fold too few", "no folds"],
)
def test_a_method_that_breaks_its_contract_is_stopped(inputs, broken):
    with pytest.raises(ValueError, match="one finite score a class for every tested subject"):
        check(inputs, Outcome(of_two_classes(broken, "probability"), "probability"))


def test_three_classes_have_a_column_each_and_the_largest_score_predicts(inputs):
    scores = np.full((2, 4, 3), NAN)
    scores[[0, 0, 1, 1], [0, 1, 2, 3]] = [[0.2, 0.5, 0.3], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.5, 0.25, 0.25]]
    three, truth = replace(inputs, classes=3), np.array([1, 0, 2, 1])
    outcome = Outcome(scores, "probability", scores[None], np.zeros((1, 2, 2)))
    check(three, outcome)
    table = predictions_table(three, outcome, truth, ("CN", "MCI", "AD"))
    assert list(table.columns[3:6]) == ["score-CN", "score-MCI", "score-AD"]
    np.testing.assert_array_equal(table[["score-CN", "score-MCI", "score-AD"]], scores[[0, 0, 1, 1], range(4)])
    rounds = history_table(three, outcome, truth).set_index(["fold", "institution"])
    np.testing.assert_allclose(rounds.loc[(0, "east"), "test_loss"], -np.log(0.5))
    assert rounds.loc[(1, "west"), "test_accuracy"] == 0


def test_names_of_other_classes_are_refused(inputs):
    outcome = Outcome(np.zeros((2, 4, 3)), "margin")
    with pytest.raises(ValueError, match="names of 3 classes"):
        predictions_table(replace(inputs, classes=3), outcome, TRUTH, ("control", "patient"))


@pytest.mark.parametrize(
    "patterns", [np.zeros((2, 2, 3)), np.zeros((1, 1, 3)), np.full((2, 1, 3), NAN)], ids=["models", "folds", "values"]
)
def test_patterns_of_other_folds_or_models_break_the_contract(inputs, outcome, patterns):
    check(inputs, replace(outcome, patterns=np.zeros((2, 1, 3), dtype=np.float32)))
    with pytest.raises(ValueError, match="expected finite patterns of 2 folds and 1 models"):
        check(inputs, replace(outcome, patterns=patterns))
