"""Three classes by hand and against scikit-learn; two classes keep their column."""

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics as sk

from brainfed.evaluation import (
    METRICS,
    against_rest,
    class_names,
    class_scores,
    confusion_table,
    predicted,
    read_predictions,
    score_runs,
)
from brainfed.evaluation._scores import class_metrics
from brainfed.runtime import UserError, write_table

NAMES = ("CN", "MCI", "AD")
LABEL = np.array([0, 0, 1, 1, 2, 2])
SCORES = np.array(
    [[0.8, 0.1, 0.1], [0.4, 0.5, 0.1], [0.2, 0.7, 0.1], [0.1, 0.6, 0.3], [0.1, 0.2, 0.7], [0.5, 0.1, 0.4]]
)
# Predicted: CN, MCI, MCI, MCI, AD, CN.


def table(label=LABEL, scores=SCORES, **columns):
    frame = pd.DataFrame(
        {
            "variant": "ridge",
            "repeat": 0,
            "subject": [f"s{number}" for number in range(len(label))],
            "institution": "east",
            "fold": 0,
            **{f"score-{name}": values for name, values in zip(NAMES, scores.T, strict=True)},
            "kind": "margin",
            "label": label,
        }
    )
    return frame.assign(**columns)


def found(label=LABEL, scores=SCORES, held=None):
    return class_metrics(label, scores, scores.argmax(axis=1), NAMES, held)


def test_three_classes_by_hand():
    values = found()
    assert tuple(values)[: len(METRICS)] == METRICS and values["accuracy"] == pytest.approx(4 / 6)
    assert values["balanced_accuracy"] == pytest.approx((1 / 2 + 1 + 1 / 2) / 3)
    assert values["precision"] == pytest.approx((1 / 2 + 2 / 3 + 1) / 3)
    assert values["specificity"] == pytest.approx((3 / 4 + 3 / 4 + 1) / 3)
    assert values["f1:MCI"] == pytest.approx(4 / 5) and values["auc:CN"] == pytest.approx(7 / 8)
    assert values["auc:MCI"] == 1 and values["auc"] == pytest.approx((7 / 8 + 1 + 1) / 3)


def test_an_institution_is_scored_over_the_classes_that_it_has():
    """East has three classes, west the first two: its AUC is their mean, and a call of the third an error."""
    west = np.array([0, 0, 1, 1])
    scores = np.array([[0.8, 0.1, 0.1], [0.4, 0.5, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]])
    both = pd.concat([table(), table(west, scores, institution="west", subject=[f"w{n}" for n in range(4)])])
    runs = score_runs(both).set_index(["scope", "metric"])["value"]
    assert runs["institution:west", "auc"] == pytest.approx((1 + 3 / 4) / 2)
    assert runs["institution:west", "balanced_accuracy"] == 1 / 2
    assert np.isnan(runs["institution:west", "auc:AD"])
    assert runs["institution:east", "auc"] == found()["auc"]
    assert runs["institution", "auc"] == (runs["institution:west", "auc"] + runs["institution:east", "auc"]) / 2


def test_a_class_of_another_fold_of_the_repeat_is_undefined_here():
    """A third class in fold 1 alone: fold 0 of that repeat has no AUC; in a repeat without it, it has one."""
    label, scores = LABEL[:4], SCORES[:4]
    lacking = [table(label, scores, subject=list("abcd"), repeat=repeat) for repeat in (0, 1)]
    runs = score_runs(pd.concat([*lacking, table(fold=1)]))
    of = runs[(runs["scope"] == "institution:east") & (runs["metric"] == "auc")].set_index(["repeat", "fold"])["value"]
    assert np.isnan(of[0, 0]) and of[0, 1] == found()["auc"]
    assert of[1, 0] == found(label, scores, held={0, 1})["auc"]


def test_an_institution_with_one_class_has_no_auc():
    runs = score_runs(table(np.zeros(6, dtype=int))).set_index(["scope", "metric"])["value"]
    assert np.isnan(runs["institution:east", "auc"]) and np.isnan(runs["institution:east", "balanced_accuracy"])


def test_they_are_scikit_learns():
    random = np.random.default_rng(2)
    label, scores = random.integers(0, 3, 60), random.dirichlet([1, 1, 1], 60)
    values, called = found(label, scores), scores.argmax(axis=1)
    assert values["auc"] == pytest.approx(sk.roc_auc_score(label, scores, multi_class="ovr", average="macro"))
    assert values["balanced_accuracy"] == pytest.approx(sk.balanced_accuracy_score(label, called))
    assert values["f1"] == pytest.approx(sk.f1_score(label, called, average="macro"))
    assert values["precision"] == pytest.approx(sk.precision_score(label, called, average="macro"))


def test_the_auc_does_not_depend_on_the_scale_of_margins():
    assert found(scores=10 * SCORES - 3)["auc"] == pytest.approx(found()["auc"])


def test_a_mean_without_one_of_its_classes_is_not_defined():
    kept = LABEL < 2
    values = found(LABEL[kept], SCORES[kept])
    assert np.isnan([values[name] for name in ("auc", "recall", "balanced_accuracy", "auc:AD", "recall:AD")]).all()
    assert values["accuracy"] == pytest.approx(3 / 4) and values["specificity:AD"] == 1
    assert np.isnan(list(found(LABEL[:0], SCORES[:0]).values())).all()


def test_predictions_know_their_classes():
    assert class_names(table()) == NAMES
    np.testing.assert_array_equal(class_scores(table()), SCORES)
    assert predicted(table()).tolist() == [0, 1, 1, 1, 2, 0]
    question = against_rest(table(), 2)
    assert question["label"].tolist() == [0, 0, 0, 0, 1, 1]
    assert question["score"].tolist() == SCORES[:, 2].tolist()


@pytest.mark.parametrize(("kind", "score", "expected"), [("probability", 0.5, 0), ("margin", 0.5, 1), ("margin", 0, 0)])
def test_two_classes_have_one_column(kind, score, expected):
    one = pd.DataFrame({"score": [score], "kind": [kind], "label": [1]})
    assert predicted(one).tolist() == [expected]
    assert class_scores(one).tolist() == [[(1 if kind == "probability" else 0) - score, score]]
    assert class_names(one) == ("0", "1")


def test_runs_have_the_metrics_of_every_class_in_every_scope():
    runs = score_runs(table())
    values = runs.set_index(["scope", "metric"])["value"]
    assert values["pooled", "recall:AD"] == values["institution", "recall:AD"] == 0.5
    assert values["institution:east", "auc"] == pytest.approx(found()["auc"])


def test_a_score_that_is_not_finite_is_refused():
    scores = SCORES.copy()
    scores[3, 2] = np.nan
    with pytest.raises(UserError, match="ridge gave nan for subject s3"):
        score_runs(table(scores=scores))


def test_confusion_by_hand():
    cells = confusion_table(table()).set_index(["label", "predicted"])
    assert cells.loc[("CN", "MCI"), "predictions"] == cells.loc[("MCI", "MCI"), "share"] == 1
    assert cells["predictions"].sum() == 6


def test_files_of_other_classes_are_refused(tmp_path):
    write_table(tmp_path / "three", table())
    write_table(tmp_path / "two", table().rename(columns={"score-AD": "score"})[["subject", "institution", "fold",
        "score", "kind", "label"]])  # fmt: skip
    with pytest.raises(UserError, match=r"expected the scores \['score-CN'"):
        read_predictions([("a", 0), ("b", 0)], [str(tmp_path / "three"), str(tmp_path / "two")])
