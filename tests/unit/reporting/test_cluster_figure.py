"""The river of clusters: its order, bands, colours and words."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainfed.federation.strategies._gcfl import split
from brainfed.reporting import ShownVariant
from brainfed.reporting.charts import draw_clusters
from brainfed.reporting.charts._graphs import (
    COLOURS,
    bands,
    colours_of_bands,
    finding,
    in_order,
    read_partitions,
    river_chart,
)
from brainfed.runtime import write_table
from support.reports.chart_rows import panel_of, rows_of

GCFL = ShownVariant("gcfl", "gcfl", "GCFL", "federated", clusters=True)
PLUS = ShownVariant("gcfl-plus", "gcfl", "GCFL", "federated", clusters=True)
NAMES = ("a", "b", "c", "d")
CLUSTERS = np.array([[0, 0, 0, 0], [0, 1, 0, 1], [0, 1, 0, 1], [0, 1, 2, 1]])


def write_history(path, clusters, folds=1):
    """A history of one or more folds; only the first is cut."""
    rows = [
        (fold, name, number + 1, 0 if fold else clusters[number][place])
        for fold in range(folds)
        for place, name in enumerate(NAMES)
        for number in range(len(clusters))
    ]
    history = pd.DataFrame(rows, columns=["fold", "institution", "round", "cluster"])
    write_table(path, history.astype({"cluster": "Int32"}))
    return str(path)


@st.composite
def partitions_and_names(draw):
    """Names and clusters of up to 30 institutions, cut in two at random."""
    institutions, rounds = draw(st.integers(1, 30)), draw(st.integers(1, 12))
    current, found = np.zeros(institutions, dtype=np.int64), []
    for _ in range(rounds):
        members = np.flatnonzero(current == draw(st.sampled_from(np.unique(current).tolist())))
        if len(members) > 2 and draw(st.booleans()):
            part = np.array([draw(st.booleans()) for _ in members])
            part[0], part[-1] = True, False
            current = split(current, members[part], members[~part], np.ones(institutions, dtype=np.int64))
        found.append(current)
    return [f"i{place}" for place in range(institutions)], np.stack(found)


def trainings():
    return partitions_and_names().map(lambda drawn: in_order(*drawn))


@given(trainings())
def test_every_cluster_is_one_band_in_every_round(training):
    for number, clusters in enumerate(training.clusters, start=1):
        present = [band for band in bands(training) if band.rounds[0] <= number <= band.rounds[1]]
        assert len(present) == len(np.unique(clusters))
        covered = sorted((band.rows, band.cluster) for band in present)
        rows = [(row, cluster) for (first, last), cluster in covered for row in range(first, last + 1)]
        assert rows == list(enumerate(clusters))


@given(trainings())
def test_neighbouring_clusters_differ_in_colour(training):
    painted = colours_of_bands(training)
    for clusters in training.clusters:
        for one, other in pairwise(clusters):
            assert one == other or painted[one] != painted[other]
    assert len(set(painted.values())) == min(len(painted), len(COLOURS))


def test_institutions_are_in_the_order_of_their_clusters():
    training = in_order(NAMES, CLUSTERS)
    assert (training.institutions, training.cuts) == (("a", "c", "b", "d"), [2, 4])
    assert training.sizes == [2, 1, 1]
    assert [(band.cluster, band.rows, band.rounds) for band in bands(training)] == [
        (0, (0, 3), (1, 1)), (0, (0, 1), (2, 3)), (1, (2, 3), (2, 4)), (0, (0, 0), (4, 4)), (2, (1, 1), (4, 4)),
    ]  # fmt: skip


def test_the_larger_part_of_a_cluster_keeps_its_number_and_stays_above():
    """The server's number stays with the first institution, which is alone here."""
    training = in_order(NAMES, np.array([[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 1]]))
    assert training.institutions == ("b", "d", "c", "a")
    assert training.clusters.tolist() == [[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 2, 1]]


@given(trainings())
def test_an_order_is_kept_when_it_is_ordered_again(training):
    again = in_order(training.institutions, training.clusters)
    assert again.institutions == training.institutions
    np.testing.assert_array_equal(again.clusters, training.clusters)


@given(partitions_and_names())
def test_who_is_together_stays_together(given_):
    names, clusters = given_
    training = in_order(names, clusters)
    place = [names.index(name) for name in training.institutions]
    for before, after in zip(clusters[:, place], training.clusters, strict=True):
        np.testing.assert_array_equal(before[:, None] == before, after[:, None] == after)


@pytest.mark.parametrize(
    ("clusters", "words"),
    [
        (CLUSTERS, "3 clusters of 2, 1 and 1 institutions, cut in rounds 2 and 4"),
        (CLUSTERS[:2], "2 clusters of 2 and 2 institutions, cut in round 2"),
        (CLUSTERS[:1], "no cluster was cut"),
        (np.tril(np.ones((6, 6), dtype=np.int64)).cumsum(axis=0) % 1, "no cluster was cut"),
        (
            np.minimum(np.arange(6), np.arange(7)[:, None]),
            "6 clusters of 1 to 1 institutions, cut in 5 rounds from 2 to 6",
        ),
    ],
    ids=["two cuts", "one cut", "one round", "no cut", "peeled"],
)
def test_the_finding_counts_clusters_and_cuts(clusters, words):
    assert finding(in_order([f"i{place}" for place in range(clusters.shape[1])], clusters)) == words


def test_the_first_fold_of_a_history_is_drawn(tmp_path):
    training = read_partitions(write_history(tmp_path / "history.parquet", CLUSTERS, folds=2))
    assert training.cuts == [2, 4]
    old = pd.read_parquet(tmp_path / "history.parquet").drop(columns="cluster")
    write_table(tmp_path / "old.parquet", old)
    assert read_partitions(str(tmp_path / "old.parquet")) is None


def test_the_figure_names_every_institution_and_has_its_finding_as_title(tmp_path):
    cut = write_history(tmp_path / "cut.parquet", CLUSTERS)
    whole = write_history(tmp_path / "whole.parquet", CLUSTERS[:1])
    draw_clusters([GCFL, PLUS], [cut, whole], str(tmp_path / "one.svg"))
    draw_clusters([GCFL, PLUS], [cut, whole], str(tmp_path / "two.svg"))
    svg = (tmp_path / "one.svg").read_text()
    assert svg == (tmp_path / "two.svg").read_text()
    assert "<dc:title>GCFL: 3 clusters of 2, 1 and 1 institutions, cut in rounds 2 and 4; GCFL+: no cluster" in svg
    left, right = (panel_of(river_chart([GCFL, PLUS], [read_partitions(cut), read_partitions(whole)]), place)
                   for place in (0, 1))  # fmt: skip
    rows = rows_of(left, "institution", "start", "end", "colour")
    assert list(dict.fromkeys(rows["institution"])) == ["a", "c", "b", "d"] and rows["colour"].nunique() == 3
    lasting = (rows["end"] - rows["start"]).groupby(rows["institution"]).sum()
    assert set(lasting) == {len(CLUSTERS)}
    assert sorted(rows_of(right, "institution", "start")["institution"]) == list(NAMES)


def test_a_figure_without_clusters_says_so():
    assert "no method of this experiment has clusters" in str(river_chart([GCFL], [None]).to_dict())
