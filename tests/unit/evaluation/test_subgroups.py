"""AUC within groups: pairs of one run only, equal to scikit-learn's where there is one run."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from brainfed.evaluation import subgroup_scores
from brainfed.evaluation._pooled import FEWEST, group_labels


def cohort(count=120):
    random = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "subject": [f"s{number:03d}" for number in range(count)],
            "site": [f"SITE_{number % 3}" for number in range(count)],
            "age": random.uniform(8, 40, count),
            "sex": ["male" if number % 4 else "female" for number in range(count)],
            "mean_fd": random.uniform(0.05, 0.4, count),
        }
    )


def predictions_of(people, folds, repeats=1, shift=0.0, institutions=1, apart=0.0):
    random = np.random.default_rng(3)
    parts = []
    for repeat in range(repeats):
        label = np.arange(len(people)) // 4 % 2
        fold = random.permutation(len(people)) % folds
        institution = np.arange(len(people)) // 3 % institutions
        score = label + random.standard_normal(len(people)) + shift * fold + apart * institution
        parts.append(
            pd.DataFrame(
                {
                    "subject": people["subject"],
                    "variant": "v",
                    "repeat": repeat,
                    "fold": fold,
                    "institution": institution,
                    "score": score,
                    "label": label,
                }
            )
        )
    return pd.concat(parts)


def test_one_run_gives_the_auc_of_every_group():
    people, predictions = cohort(), predictions_of(cohort(), folds=1)
    found = subgroup_scores(predictions, people).set_index("group")
    for site in ("SITE_0", "SITE_1", "SITE_2"):
        part = predictions[predictions["subject"].isin(people.loc[people["site"] == site, "subject"])]
        assert found.loc[site, "auc"] == pytest.approx(roc_auc_score(part["label"], part["score"]))
        assert found.loc[site, "low"] < found.loc[site, "auc"] < found.loc[site, "high"]
        assert found.loc[site, ["subjects", "patients"]].tolist() == [len(part), part["label"].sum()]


def test_the_interval_is_that_of_95_per_cent():
    """From low to high are 3.92 standard deviations of an AUC whose people are drawn again."""
    people, random = cohort(), np.random.default_rng(5)
    predictions = predictions_of(people, folds=1)
    row = subgroup_scores(predictions, people).query("group == 'male'").iloc[0]
    men = predictions[(people["sex"] == "male").to_numpy()]
    patients, controls = (men.loc[men["label"] == label, "score"].to_numpy() for label in (1, 0))
    drawn = [
        (random.choice(patients, len(patients))[:, None] > random.choice(controls, len(controls))).mean()
        for _ in range(2000)
    ]
    assert row["high"] - row["low"] == pytest.approx(3.92 * np.std(drawn), rel=0.08)


def test_scores_of_other_runs_and_institutions_are_not_compared():
    """A constant that a fold adds to all its scores changes nothing."""
    people = cohort()
    plain, shifted = (subgroup_scores(predictions_of(people, 4, 2, shift), people) for shift in (0.0, 100.0))
    pd.testing.assert_frame_equal(plain, shifted)
    # Models of institutions have no common scale: a constant that one adds to all its scores changes nothing.
    plain, apart = (subgroup_scores(predictions_of(people, 2, 2, 0.0, 4, shift), people) for shift in (0.0, 100.0))
    pd.testing.assert_frame_equal(plain, apart)


@pytest.mark.full("A claim about many draws takes seconds.")
def test_the_bootstrap_interval_covers_as_often_as_it_says():
    """Of 60 made-up cohorts with a known AUC, at least 80 % have it inside their 95 % interval."""
    random, people, held = np.random.default_rng(7), cohort(), []
    true = 0.7602  # of two normal distributions one standard deviation apart: Phi(1 / sqrt(2))
    label = np.arange(len(people)) % 2
    for _ in range(60):
        predictions = pd.DataFrame(
            {"subject": people["subject"], "variant": "v", "repeat": 0, "fold": 0, "institution": "A", "label": label,
             "score": label + random.standard_normal(len(people))}
        )  # fmt: skip
        row = subgroup_scores(predictions, people).query("group == 'male'").iloc[0]
        held.append(row["low"] <= true <= row["high"])
    assert np.mean(held) >= 0.8


def test_a_small_group_has_no_row():
    people = cohort()
    people.loc[:FEWEST, "site"] = "TINY"
    assert "TINY" not in set(subgroup_scores(predictions_of(people, 1), people)["group"])


def test_thirds_hold_a_third_each_and_go_upwards():
    labels = group_labels(cohort())
    assert list(labels) == ["sex", "age", "motion", "site"]
    assert labels["age"].value_counts().tolist() == [40, 40, 40]
    lows = [float(name.split(" to ")[0]) for name in labels["age"].cat.categories]
    assert lows == sorted(lows)


def test_nobody_has_an_age():
    people = cohort().assign(age=np.nan, mean_fd=np.nan, sex=None)
    assert list(group_labels(people)) == ["site"]
