"""Data sets of graphs are read as their text files say, one-hot, without self-loops and repeated edges."""

import os
from pathlib import Path

import numpy as np
import pytest

from brainfed.graphs import GraphFiles, contents, read_data_set, write_graphs
from brainfed.runtime import UserError, read_arrays, read_table
from brainfed.samples import read_graph_samples
from reference.tu_graphs import read_plainly
from support.files.tu_data_set import write_data_set, write_lines


def assert_as_plain(raw: Path, name: str) -> None:
    plain = read_plainly(raw, name)
    data = read_data_set(raw, name, len(plain))
    node, edge = np.concatenate([[0], np.cumsum(data.sizes)]), np.concatenate([[0], np.cumsum(data.edges)])
    for place, (nodes, edges) in enumerate(plain):
        np.testing.assert_array_equal(data.nodes[node[place] : node[place + 1]], nodes)
        own = slice(edge[place], edge[place + 1])
        found = list(zip(data.source[own].tolist(), data.target[own].tolist(), strict=True))
        assert set(found) == edges
        assert len(found) == len(edges)


@pytest.mark.parametrize("node_labels", [0, 4])
def test_equal_to_a_reading_line_by_line(tmp_path, node_labels):
    assert_as_plain(write_data_set(tmp_path, "TOY", 25, node_labels=node_labels), "TOY")


def test_self_loops_and_repeated_edges_are_dropped(tmp_path):
    raw = write_data_set(tmp_path, "TOY", 5)
    path = raw / "TOY_A.txt"
    path.write_text("1, 1\n" + path.read_text() * 2)
    assert_as_plain(raw, "TOY")


def test_graphs_of_one_node_and_without_edges_stay(tmp_path):
    raw = write_data_set(tmp_path, "TOY", 5)
    last = len((raw / "TOY_graph_indicator.txt").read_text().splitlines())
    with (raw / "TOY_graph_indicator.txt").open("a") as file:
        file.write("6\n7\n7\n")
    with (raw / "TOY_node_labels.txt").open("a") as file:
        file.write("0\n1\n2\n")
    data = read_data_set(raw, "TOY", 7)
    assert data.sizes.tolist()[-2:] == [1, 2]
    assert data.edges.tolist()[-2:] == [0, 0]
    assert len(data.nodes) == last + 3


@pytest.mark.data
@pytest.mark.parametrize("name", ["PROTEINS", "MUTAG"])
def test_public_data_sets_are_read_as_they_are(name):
    if "BRAINFED_DATA" not in os.environ:
        pytest.skip("BRAINFED_DATA is not set")
    raw = Path(os.environ["BRAINFED_DATA"]) / "tudataset" / name / "raw"
    if not raw.is_dir():
        pytest.skip(f"no data set {name}")
    assert_as_plain(raw, name)


def written(folder: Path, *names: str) -> GraphFiles:
    out = GraphFiles(*(folder / f"graphs{end}" for end in (".safetensors", "-quality.parquet", "-coverage.parquet")))
    folders = {name: str(folder / name / "raw") for name in names}
    counts = {name: len((folder / name / "raw" / f"{name}_graph_labels.txt").read_text().split()) for name in names}
    ids = {name: [f"{name}-{number + 1:05d}" for number in range(count)] for name, count in counts.items()}
    write_graphs(folders, ids, out)
    return out


def test_the_artefact_holds_all_data_sets_in_the_order_of_ids(tmp_path):
    write_data_set(tmp_path, "TOY", 8, node_labels=2)
    write_data_set(tmp_path, "OTHER", 6, node_labels=5, seed=1)
    out = written(tmp_path, "TOY", "OTHER")
    file = read_arrays(out.graphs)
    assert list(file.subjects) == sorted(file.subjects)
    graphs = read_graph_samples(out.graphs, file.subjects)
    assert graphs.nodes.shape[1] == 5
    plain = [*read_plainly(tmp_path / "OTHER" / "raw", "OTHER"), *read_plainly(tmp_path / "TOY" / "raw", "TOY")]
    for place, (nodes, edges) in enumerate(plain):
        one = graphs.of(np.array([place]))
        np.testing.assert_array_equal(one.nodes[:, : nodes.shape[1]], nodes)
        assert not one.nodes[:, nodes.shape[1] :].any()
        assert set(zip(one.source.tolist(), one.target.tolist(), strict=True)) == edges
    quality = read_table(out.quality)
    assert quality["checksum"].is_unique
    assert (quality["problem"] == "").all()


def test_equal_graphs_are_found_by_their_contents(tmp_path):
    raw = write_data_set(tmp_path, "TOY", 4)
    write_lines(raw / "TOY_graph_indicator.txt", [1, 1, 2, 2, 3, 3, 4])
    write_lines(raw / "TOY_A.txt", ["1, 2", "2, 1", "3, 4", "4, 3"])
    write_lines(raw / "TOY_node_labels.txt", [0, 1, 0, 1, 0, 1, 0])
    held = contents(read_arrays(written(tmp_path, "TOY").graphs).arrays)
    assert held[0] == held[1]
    assert len(set(held)) == 3


@pytest.mark.parametrize(
    ("part", "values", "words"),
    [
        ("A", ["1, 2", "2, 9"], "expected edges inside of graphs, found one from graph 1 to another"),
        ("graph_indicator", [1, 1, 3, 3, 3, 3, 4, 4, 4], "expected a node in every graph, found none in graph 2"),
        ("graph_indicator", [1, 1, 1], "fetch"),
        ("node_labels", [0] * 8, "TOY_node_labels.txt: expected a line for each of 9 nodes, found 8"),
        ("A", ["1, two"], "expected a data set in TU format, found files that cannot be read"),
    ],
)
def test_files_that_contradict_each_other_get_a_sentence(tmp_path, part, values, words):
    raw = write_data_set(tmp_path, "TOY", 4)
    write_lines(raw / "TOY_graph_indicator.txt", [1, 1, 1, 2, 2, 3, 3, 4, 4])
    write_lines(raw / "TOY_node_labels.txt", [0] * 9)
    write_lines(raw / "TOY_A.txt", ["1, 2", "2, 1"])
    write_lines(raw / f"TOY_{part}.txt", values)
    with pytest.raises(UserError) as refused:
        read_data_set(raw, "TOY", 4)
    assert words in str(refused.value)


def test_more_labels_than_graphs_get_a_sentence(tmp_path):
    raw = write_data_set(tmp_path, "TOY", 5)
    with pytest.raises(UserError, match="expected 9 graphs, as many as there are labels, found 5"):
        read_data_set(raw, "TOY", 9)
