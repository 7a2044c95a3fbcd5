"""Graphs of a file in the order of the subjects; damage is named by the subject that has it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brainfed.runtime.artefacts import write_arrays
from brainfed.runtime.errors import UserError
from brainfed.samples.graph_samples import ARRAYS, GraphSamples, read_graph_samples
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
