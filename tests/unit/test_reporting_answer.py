"""The sentences of the first screen say what the corrected tests say, and no more."""

import numpy as np
import pandas as pd
import pytest

from brainfed.reporting.answer import find_answer, sentences, verdict
from brainfed.reporting.intervals import interval
from brainfed.reporting.variants import ShownVariant

RIDGE = ShownVariant("ridge-central", "ridge", "Ridge", "linear", {"training": "central"})
RIDGE_LOCAL = ShownVariant("ridge-local", "ridge", "Ridge", "linear", {"training": "local"})
LOCAL = ShownVariant("localgcn", "localgcn", "LocalGCN", "graph", {"curve_every": 10})
FEDGCN = ShownVariant("fedgcn", "fedgcn", "FedGCN", "federated", {"rounds": 10, "local_epochs": 10, "noise": 0.01})
QUIET = ShownVariant("fedgcn-no-noise", "fedgcn", "FedGCN", "federated", {"rounds": 10, "noise": 0.0})
WOBBLE = np.array([-0.02, -0.01, 0.0, 0.01, 0.02, -0.02, -0.01, 0.0, 0.01, 0.02])


def runs_of(**values):
    """Institution AUCs of ten runs: each variant its mean and a wobble of its own."""
    return pd.DataFrame(
        [
            (variant.replace("_", "-"), index // 5, index % 5, "institution", "auc", mean + wobble)
            for number, (variant, mean) in enumerate(values.items())
            for index, wobble in enumerate(np.roll(WOBBLE, number))
        ],
        columns=["variant", "repeat", "fold", "scope", "metric", "value"],
    )


def answer_of(variants, **values):
    return find_answer(runs_of(**values), variants, "ridge-central", "localgcn", 0.25)


def test_the_best_federated_method_is_the_one_with_the_highest_mean():
    answer = answer_of(
        [FEDGCN, QUIET, RIDGE, LOCAL], fedgcn=0.60, fedgcn_no_noise=0.62, ridge_central=0.7, localgcn=0.5
    )
    assert answer.chosen == QUIET
    assert answer.candidates == 2
    assert answer.score.mean == pytest.approx(0.62)
    assert answer.score.runs == 10


def test_a_clear_gain_and_a_clear_loss_are_said():
    answer = answer_of([FEDGCN, RIDGE, LOCAL], fedgcn=0.70, ridge_central=0.90, localgcn=0.50)
    assert verdict(answer) == "Federation beats learning alone and falls short of pooling all data"
    text = sentences(answer)
    assert text[0].startswith("The only federated method, FedGCN, reaches an AUC of 0.700 [")
    assert "Ridge (central), on everybody’s pooled data, reaches 0.900: the federated method loses −0.200" in text[1]
    assert "with LocalGCN: the federated method gains +0.200" in text[2]


def test_a_difference_within_the_noise_is_not_called_one():
    answer = answer_of([FEDGCN, RIDGE, LOCAL], fedgcn=0.701, ridge_central=0.700, localgcn=0.699)
    assert not answer.reference.significant
    assert answer.reference.difference.low < 0 < answer.reference.difference.high
    assert verdict(answer) == (
        "Federation gains nothing significant over learning alone "
        "and does not differ significantly from pooling all data"
    )
    assert all("is not significant (p = " in sentence for sentence in sentences(answer)[1:])


def test_an_institution_alone_is_represented_by_its_strongest_model():
    answer = answer_of(
        [FEDGCN, RIDGE, RIDGE_LOCAL, LOCAL], fedgcn=0.7, ridge_central=0.9, ridge_local=0.8, localgcn=0.5
    )
    assert answer.strongest_local.other == RIDGE_LOCAL
    assert verdict(answer).startswith("Federation does worse than learning alone")
    said = sentences(answer)[2]
    assert "reaches 0.800 with Ridge (local): the federated method loses −0.100" in said
    assert said.endswith("With LocalGCN it reaches 0.500.")


def test_holm_counts_the_federated_methods_and_nothing_else():
    few = answer_of([FEDGCN, RIDGE], fedgcn=0.70, ridge_central=0.72)
    more = answer_of([FEDGCN, QUIET, RIDGE], fedgcn=0.70, fedgcn_no_noise=0.60, ridge_central=0.72)
    with_others = answer_of([FEDGCN, RIDGE, LOCAL], fedgcn=0.70, ridge_central=0.72, localgcn=0.6)
    assert few.reference.p == pytest.approx(with_others.reference.p, rel=1e-12)
    assert more.reference.p >= few.reference.p


def test_without_a_federated_method_there_is_no_answer():
    answer = answer_of([RIDGE, LOCAL], ridge_central=0.7, localgcn=0.6)
    assert answer.chosen is None
    assert verdict(answer) == "No federated method was run"
    assert len(sentences(answer)) == 1


def test_a_single_run_is_not_tested():
    answer = find_answer(
        runs_of(fedgcn=0.7, ridge_central=0.8).query("repeat == 0 and fold == 0"),
        [FEDGCN, RIDGE],
        "ridge-central",
        "localgcn",
        0.25,
    )
    assert "from too few runs to be tested" in sentences(answer)[1]
    assert not answer.reference.significant


def test_the_interval_is_the_corrected_one():
    """0.59 and 0.61: variance 0.0002, error sqrt((1/2 + 1/4) 0.0002), t(0.975, 1) = 12.7062; cut at 0 and 1."""
    runs = runs_of(fedgcn=0.6).head(2).assign(value=[0.59, 0.61])
    found = interval(runs, "fedgcn", "auc", 0.25)
    reach = 12.7062 * np.sqrt(0.75 * 0.0002)
    assert (found.low, found.high) == (pytest.approx(0.6 - reach, abs=1e-5), pytest.approx(0.6 + reach, abs=1e-5))
    wide = interval(runs.assign(value=[0.5, 0.7]), "fedgcn", "auc", 0.25)
    assert (wide.low, wide.high) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("name", "method", "title"),
    [("fedgcn", "fedgcn", "FedGCN"), ("fedgcn-no-noise", "fedgcn", "FedGCN (no noise)"), ("mine", "fedgcn", "mine")],
)
def test_titles(name, method, title):
    assert ShownVariant(name, method, "FedGCN", "federated").title == title
