"""Whole graphs of a file in the order of the subjects: damage named, unlabelled ones left out, labels hidden."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brainfed.runtime import Streams, UserError, write_arrays, write_table
from brainfed.samples import (
    GraphSamples,
    Outcome,
    assemble_graphs,
    check,
    history_table,
    predictions_table,
    read_graph_samples,
)
from brainfed.samples._series import ARRAYS
from support.files.connectome_files import built, correlations, edges_of, ids

SIZES, EDGES = (3, 1, 4, 2), ([(0, 1), (1, 0), (1, 2), (2, 1)], [], [(0, 3), (3, 0)], [(0, 1), (1, 0)])

"""Four graphs of different sizes, the second without edges."""


def samples():
    pairs = np.array([pair for edges in EDGES for pair in edges])
    return GraphSamples(
        node_start=np.concatenate([[0], np.cumsum(SIZES)]),
        nodes=np.arange(2 * sum(SIZES), dtype=np.float32).reshape(-1, 2),
        edge_start=np.concatenate([[0], np.cumsum([len(edges) for edges in EDGES])]),
        source=pairs[:, 0],
        target=pairs[:, 1],
        weight=np.linspace(-1, 1, len(pairs)).astype(np.float32),
    )


def graph(held, subject):
    nodes = held.nodes[slice(*held.node_start[subject : subject + 2])]
    return nodes.tolist(), list(edges_of(held, subject).items())


def write(folder, subjects=None, **changes):
    arrays = {name: getattr(samples(), name) for name in ARRAYS} | changes
    write_arrays(folder / "graphs.safetensors", arrays, {"subjects": subjects or ids(4)})
    return folder / "graphs.safetensors"


@settings(deadline=None)
@given(chosen=st.lists(st.integers(0, 3), max_size=6))
def test_a_selection_has_the_chosen_graphs_in_their_order(chosen):
    held = samples().of(np.array(chosen, dtype=np.int64))
    assert len(held) == len(chosen)
    assert [graph(held, place) for place in range(len(held))] == [graph(samples(), place) for place in chosen]
    for name, (kind, axes) in ARRAYS.items():
        assert (getattr(held, name).dtype, getattr(held, name).ndim) == (kind, axes)


def test_a_file_is_read_in_any_order_of_subjects(tmp_path):
    path = write(tmp_path)
    for order in ([0, 1, 2, 3], [2, 0], [3, 2, 1, 0], [1, 2]):
        held = read_graph_samples(path, [f"s{place:02d}" for place in order])
        assert [graph(held, place) for place in range(len(held))] == [graph(samples(), place) for place in order]


def test_graphs_in_the_order_of_their_file_are_pages_of_it(tmp_path):
    held = built(tmp_path, correlations(), 6)
    for part in (held, held.of(np.arange(2, 5))):
        for name in ("nodes", "source", "target", "weight"):
            array = getattr(part, name)
            while not isinstance(array, np.memmap):
                array = array.base
            assert not getattr(part, name).flags.writeable


def test_a_subject_without_a_graph_is_named(tmp_path):
    with pytest.raises(UserError, match=r"graphs\.safetensors: subject 's09' is missing"):
        read_graph_samples(write(tmp_path), ["s01", "s09"])


def changed(name, place, value):
    array = getattr(samples(), name).copy()
    array[place] = value
    return {name: array}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (changed("nodes", (4, 1), np.nan), "'s02' has a node feature that is not finite"),
        (changed("weight", 4, np.inf), "'s02' has a weight that is not finite"),
        (changed("source", 7, 2), "'s03' has an edge to a node outside of it"),
        (changed("target", 0, -1), "'s00' has an edge to a node outside of it"),
        (changed("target", 5, 3), "'s02' has a self-loop"),
        (changed("node_start", 2, 3), "'s01' has no node"),
        (changed("node_start", 0, 1), "node_start that does not ascend from 0 in 5 steps"),
        (changed("edge_start", 1, 5), "edge_start that does not ascend from 0 in 5 steps"),
        (changed("edge_start", 4, 9), "8 rows of source, not 9"),
        ({"weight": np.zeros(7, dtype=np.float32)}, "7 rows of weight, not 8"),
        ({"nodes": np.zeros((10, 2))}, "nodes of float64"),
        ({"nodes": np.zeros(10, dtype=np.float32)}, r"nodes of float32 \(10,\)"),
        ({"source": np.zeros(8, dtype=np.int32)}, "source of int32"),
    ],
)
def test_damage_is_one_sentence(tmp_path, changes, words):
    with pytest.raises(UserError, match=words) as raised:
        read_graph_samples(write(tmp_path, **changes), ids(4))
    assert "delete" in str(raised.value) and "run again" in str(raised.value)


def test_graphs_without_any_edge_are_graphs(tmp_path):
    none = {name: np.zeros(0, dtype=ARRAYS[name][0]) for name in ("source", "target", "weight")}
    held = read_graph_samples(write(tmp_path, edge_start=np.zeros(5, dtype=np.int64), **none), ids(4)[::-1])
    assert (len(held), len(held.source), held.nodes[0].tolist()) == (4, 0, samples().nodes[8].tolist())


def test_damage_of_a_graph_that_nobody_reads_does_no_harm(tmp_path):
    path = write(tmp_path, **changed("nodes", (4, 1), np.nan))
    assert len(read_graph_samples(path, ["s00", "s03"])) == 2


COUNT, REGIONS = 7, 6

FOLD = np.array([0, 1, 0, 1, -1, 0, 1])

DIAGNOSIS = np.array([1, 0, 0, 1, 0, 1, 0])

LABELLED = [place for place in range(COUNT) if FOLD[place] >= 0]


@pytest.fixture
def graphs(tmp_path):
    """The graphs of seven subjects, and tables of them with shuffled rows; the fifth has no label."""
    order = np.random.default_rng(0).permutation(COUNT)
    split = pd.DataFrame({"subject": ids(COUNT), "institution": list("abababa"), "fold": FOLD})
    people = pd.DataFrame(
        {
            "subject": ids(COUNT),
            "site": "one",
            "age": 20.0,
            "sex": pd.array(["male"] * COUNT, dtype="string"),
            "diagnosis": pd.array(np.where(FOLD >= 0, DIAGNOSIS, None), dtype="Int8"),
            "mean_fd": 0.1,
        }
    )
    write_table(tmp_path / "split.parquet", split.iloc[order])
    write_table(tmp_path / "participants.parquet", people.iloc[order[::-1]])
    return built(tmp_path, correlations(COUNT, REGIONS), REGIONS)


def assembled(folder, files=1, labels="true", **given):
    return assemble_graphs(
        split=folder / "split.parquet",
        participants=folder / "participants.parquet",
        connectomes=[folder / "connectomes.safetensors"] * files,
        labels=labels,
        streams=Streams(1),
        **given,
    )


def test_labelled_subjects_have_their_graphs(tmp_path, graphs):
    inputs, truth = assembled(tmp_path)
    assert inputs.subjects == tuple(ids(COUNT)[place] for place in LABELLED)
    assert inputs.institutions == ("a", "b")
    np.testing.assert_array_equal(inputs.institution, np.array([0, 1, 0, 1, 0, 1, 0])[LABELLED])
    np.testing.assert_array_equal(truth, DIAGNOSIS[LABELLED])
    for place, subject in enumerate(LABELLED):
        assert edges_of(inputs.fold_graphs(0), place) == edges_of(graphs, subject)


def test_labels_are_hidden_where_their_subjects_are_tested(tmp_path, graphs):
    for labels in ("true", "permuted"):
        inputs, truth = assembled(tmp_path, labels=labels)
        tested = np.arange(2)[:, None] == FOLD[LABELLED]
        np.testing.assert_array_equal(inputs.labels, np.where(tested, -1, truth))


def test_one_file_a_fold_gives_every_fold_its_graphs(tmp_path, graphs):
    inputs, _ = assembled(tmp_path, files=2)
    assert len(inputs.graphs) == 2 and inputs.fold_graphs(1) is inputs.graphs[1]
    shared, _ = assembled(tmp_path)
    assert shared.fold_graphs(1) is shared.graphs[0]


def test_a_subject_of_the_split_without_a_graph_is_named(tmp_path, graphs):
    built(tmp_path, correlations(COUNT - 1, REGIONS), REGIONS)
    with pytest.raises(UserError, match=r"connectomes\.safetensors: subject 's06' is missing"):
        assembled(tmp_path)


def test_graphs_of_other_subjects_widths_or_folds_are_no_inputs(tmp_path, graphs):
    inputs, _ = assembled(tmp_path)
    whole = inputs.graphs[0]
    wide = replace(whole, nodes=np.pad(whole.nodes, ((0, 0), (0, 1))))
    for held in ((graphs,), (whole, wide), (whole, whole, whole), ()):
        with pytest.raises(ValueError, match="expected"):
            replace(inputs, graphs=held)
    with pytest.raises(ValueError, match="must not have the label"):
        replace(inputs, labels=np.ones_like(inputs.labels))


def test_an_outcome_on_graphs_becomes_tables(tmp_path, graphs):
    inputs, truth = assembled(tmp_path, classes=3)
    tested = np.arange(2)[:, None] == inputs.fold
    scores = np.where(tested[..., None], 1 / 3, np.nan) * np.ones(3)
    outcome = Outcome(scores, "probability", scores[None], np.ones((1, 2, 2)))
    check(inputs, outcome)
    table = predictions_table(inputs, outcome, truth, ["x", "y", "z"])
    assert table["subject"].tolist() == list(inputs.subjects)
    assert table["label"].tolist() == truth.tolist()
    assert len(history_table(inputs, outcome, truth)) == 4
    with pytest.raises(ValueError, match="contributions"):
        check(inputs, replace(outcome, contributions=np.zeros((len(inputs.subjects), 3, 1), dtype=np.float32)))
