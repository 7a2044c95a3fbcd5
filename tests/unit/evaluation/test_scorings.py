"""The last model against the paper's scoring, by hand and beside a server that keeps models."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brainfed.evaluation import LAST, PAPER_SCORING
from brainfed.evaluation._scores import institution_table, kept_models, read_histories
from brainfed.runtime import UserError, write_table
from reference.cached_models import best_of_cache

NAMES = ("east", "north", "west")
CLUSTERS = np.array([[0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 0, 1]])
"""West is cut off in the third round."""
ACCURACY = np.array([[0.9, 0.9, 0.9], [0.5, 0.8, 0.6], [1.0, 1.0, 1.0], [0.6, 0.7, 0.4]])
"""Of every round: the second one's models are kept, the first's and third's are not."""
COUNTERPART = (0.5, 0.7, 0.5)


def history(accuracy=ACCURACY, clusters=CLUSTERS, names=NAMES, fold=0, repeat=0):
    """One row an institution and round; `clusters` None: null ones."""
    rows = [
        (fold, name, number + 1, accuracy[number, place], None if clusters is None else clusters[number, place], repeat)
        for place, name in enumerate(names)
        for number in range(len(accuracy))
    ]
    found = pd.DataFrame(rows, columns=["fold", "institution", "round", "test_accuracy", "cluster", "repeat"])
    return found.astype({"cluster": "Int32"})


def runs(names=NAMES, **accuracies):
    """Rows of the scores of variants: name -> (institutions,) of one run, or (runs, institutions)."""
    return pd.DataFrame(
        [
            (variant.replace("_", "-"), 0, fold, f"institution:{name}", "accuracy", values[place])
            for variant, of_runs in accuracies.items()
            for fold, values in enumerate(np.atleast_2d(of_runs))
            for place, name in enumerate(names)
        ],
        columns=["variant", "repeat", "fold", "scope", "metric", "value"],
    )


def row(table, variant, scoring):
    return table.set_index(["variant", "scoring"]).loc[(variant, scoring)]


def test_the_paper_takes_the_best_of_the_models_before_a_cut_and_after_the_end():
    scored = runs(gcfl=ACCURACY[-1], selftrain=COUNTERPART, ridge=(0.5, 0.5, 0.5))
    table = institution_table(scored, {"gcfl": history()}, {"gcfl": "selftrain"})
    last, paper = row(table, "gcfl", LAST), row(table, "gcfl", PAPER_SCORING)
    np.testing.assert_allclose(last["accuracy"], (0.6 + 0.7 + 0.4) / 3)
    np.testing.assert_allclose(paper["accuracy"], (0.6 + 0.8 + 0.6) / 3)
    np.testing.assert_allclose([last["min_gain"], paper["min_gain"]], [-0.1, 0.1])
    assert (last["improved"], last["equal"], last["institutions"], last["twin"]) == (1, 1, 3, "selftrain")
    assert (paper["improved"], paper["equal"]) == (3, 0)
    for variant in ("selftrain", "ridge"):
        one, other = row(table, variant, LAST), row(table, variant, PAPER_SCORING)
        assert one["accuracy"] == other["accuracy"]
        assert np.isnan(one["min_gain"]) and pd.isna(one["improved"])


def test_gains_are_means_over_runs_before_the_smallest_is_taken():
    """West gains .2 and loses .1: its mean gain is the smallest, no single run's is."""
    scored = runs(fedavg=[[0.6, 0.7, 0.7], [0.6, 0.7, 0.4]], selftrain=[COUNTERPART, COUNTERPART])
    found = row(institution_table(scored, {}, {"fedavg": "selftrain"}), "fedavg", LAST)
    np.testing.assert_allclose(found["min_gain"], 0.0, atol=1e-12)
    assert (found["improved"], found["equal"], found["runs"]) == (2, 1, 2)
    means = np.array([2.0, 1.7]) / 3
    np.testing.assert_allclose([found["accuracy"], found["sd"]], [means.mean(), means.std(ddof=1)])
    np.testing.assert_allclose(found["institution_sd"], np.std([0.7, 0.4], ddof=1) / 3)


def test_an_old_history_without_clusters_is_one_cluster(tmp_path):
    path = tmp_path / "history.parquet"
    write_table(path, history().drop(columns=["cluster", "repeat"]))
    found = read_histories({"gcfl": [str(path)]})
    assert found["gcfl"]["cluster"].isna().all()
    table = institution_table(runs(gcfl=ACCURACY[-1]), found, {})
    assert row(table, "gcfl", LAST)["accuracy"] == row(table, "gcfl", PAPER_SCORING)["accuracy"]


def test_a_site_that_only_the_last_round_scores_has_its_last_model():
    unseen = np.where(np.arange(4)[:, None] < 3, np.nan, ACCURACY)
    table = institution_table(runs(gcfl=ACCURACY[-1]), {"gcfl": history(unseen)}, {})
    assert row(table, "gcfl", LAST)["accuracy"] == row(table, "gcfl", PAPER_SCORING)["accuracy"]


def test_a_history_of_other_predictions_is_refused():
    with pytest.raises(UserError, match="gcfl: expected the accuracies of its predictions in the last round"):
        institution_table(runs(gcfl=(0.6, 0.7, 0.5)), {"gcfl": history()}, {})


@st.composite
def trainings(draw):
    """(T, M) clusters, cut in two at random as `federation.strategies._gcfl` numbers them, and accuracies."""
    institutions, rounds = draw(st.integers(1, 7)), draw(st.integers(1, 6))
    current, clusters = np.zeros(institutions, dtype=np.int64), []
    for _ in range(rounds):
        for cluster in np.unique(current):
            members = np.flatnonzero(current == cluster)
            leaves = [member for member in members[1:] if draw(st.booleans())]
            current = current.copy()
            current[leaves] = current.max() + 1
        clusters.append(current)
    counts = st.lists(st.integers(0, 5), min_size=institutions, max_size=institutions)
    accuracy = np.array([draw(counts) for _ in range(rounds)]) / 5
    return np.stack(clusters), accuracy


@given(trainings())
@settings(max_examples=30)
def test_the_scoring_is_a_servers_that_keeps_models(training):
    clusters, accuracy = training
    names = tuple(f"i{place}" for place in range(clusters.shape[1]))
    table = institution_table(runs(names, gcfl=accuracy[-1]), {"gcfl": history(accuracy, clusters, names)}, {})
    partitions = [[set(np.flatnonzero(of_round == one)) for one in np.unique(of_round)] for of_round in clusters]
    expected = best_of_cache(partitions, [dict(enumerate(of_round)) for of_round in accuracy])
    last, paper = row(table, "gcfl", LAST)["accuracy"], row(table, "gcfl", PAPER_SCORING)["accuracy"]
    np.testing.assert_allclose(paper, np.mean(list(expected.values())))
    assert paper >= last - 1e-12
    if (clusters == 0).all():
        np.testing.assert_allclose(paper, last)


@given(trainings())
def test_a_model_is_kept_at_the_end_and_before_its_cluster_is_cut(training):
    clusters, _ = training
    kept = kept_models(clusters)
    assert kept[-1].all()
    for number in range(len(clusters) - 1):
        together = [set(np.flatnonzero(clusters[number] == one)) for one in clusters[number]]
        after = [set(np.flatnonzero(clusters[number + 1] == one)) for one in clusters[number + 1]]
        assert kept[number].tolist() == [one not in after for one in together]
