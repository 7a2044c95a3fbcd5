"""Prediction of the site from an embedding: separated sites are identified, noise is not, small sites are left out."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from brainfed.evaluation import site_trace
from brainfed.graphs import PopulationGraph
from brainfed.reporting.tables import ShownGraph, site_rows, site_trace_table

SITE = np.repeat([0, 1, 2], [100, 60, 40])


def embedding_of(site, distance):
    """Standard normal noise in six dimensions; every site is moved along an axis of its own."""
    noise = np.random.default_rng(0).standard_normal((len(site), 6))
    return noise + distance * np.eye(6)[site]


def test_separated_sites_are_predicted_without_error():
    trace = site_trace(embedding_of(SITE, 30.0), SITE)
    assert trace.accuracy == 1.0
    assert (trace.chance, trace.subjects, trace.sites, trace.left_out) == (0.5, 200, 3, 0)


def test_noise_predicts_no_site():
    """Chance is 0.5; three binomial standard errors of 200 subjects are 0.106."""
    trace = site_trace(embedding_of(SITE, 0.0), SITE)
    assert trace.accuracy == pytest.approx(trace.chance, abs=0.106)


def test_the_scale_of_an_embedding_does_not_matter():
    embedding = embedding_of(SITE, 1.0)
    assert site_trace(1000 * embedding, SITE) == site_trace(embedding, SITE)


def test_small_sites_and_unknown_sites_do_not_count():
    site = np.concatenate([SITE, np.full(4, 3), np.full(7, -1)])
    trace = site_trace(embedding_of(site, 30.0), site)
    assert (trace.subjects, trace.sites, trace.left_out) == (200, 3, 1)


def test_one_site_has_no_accuracy():
    trace = site_trace(embedding_of(np.zeros(20, dtype=int), 0.0), np.zeros(20, dtype=np.int64))
    assert np.isnan(trace.accuracy) and (trace.sites, trace.left_out) == (1, 0)


def shown(scope, shuffled=False):
    """Two institutions of 30 with two sites each; in the first the sites lie apart, in the second on one spot."""
    site = np.tile(np.repeat([0, 1], 15), 2)
    embedding = np.where(np.arange(60)[:, None] < 30, 10.0 * site[:, None], 0.0).astype(np.float32)
    people = pd.DataFrame(
        {
            "subject": [f"s{number:02d}" for number in range(60)],
            "institution": np.repeat(["a", "b"], 30),
            "site": np.where(site == 0, "X", "Y"),
        }
    )
    nobody = np.zeros(0, dtype=np.int64)
    graph = PopulationGraph(nobody, nobody, np.zeros(0, dtype=np.float32), embedding, (1.0,))
    return ShownGraph("graph", graph, people, scope, shuffled)


def test_local_embeddings_are_judged_one_by_one():
    table = site_trace_table([shown("local"), shown("local", shuffled=True)])
    assert (table["group"].tolist(), table["accuracy"].tolist()) == (["a", "b"], [1.0, 0.5])
    (row,) = site_rows(table)
    assert (row.title, row.accuracy, row.lowest, row.highest) == ("inside institutions", 0.75, 0.5, 1.0)
    assert (row.embeddings, row.sites, row.subjects) == (2, "2", "30")


def test_an_embedding_over_all_subjects_has_one_row_before_and_after_the_cut_and_in_every_repeat():
    graphs = [replace(shown(scope), name=scope) for scope in ("global_cut", "global_cut", "global")]
    table = site_trace_table(graphs)
    assert table[["graph", "title", "group"]].to_numpy().tolist() == [["global_cut", "over everybody", "everybody"]]
    other = replace(shown("global"), graph=replace(shown("global").graph, embedding=-graphs[0].graph.embedding))
    (row,) = site_rows(site_trace_table([*graphs, other]))
    assert (row.title, row.embeddings) == ("over everybody", 2)


def test_a_global_embedding_is_judged_as_a_whole():
    (row,) = site_rows(site_trace_table([shown("global")]))
    assert ((row.embeddings, row.sites, row.subjects), row.accuracy) == ((1, "2", "60"), 0.75)
