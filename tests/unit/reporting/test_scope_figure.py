"""The picture of the scopes: which piece of the graph is drawn, that its lines are edges, what it says."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection

from brainfed.graphs import GraphSettings, build_graph
from brainfed.reporting.figures import draw_scopes, read_scope_graphs
from brainfed.reporting.figures._scopes import INSTITUTIONS, SUBJECTS, _layout, choose_piece, finding, scope_figure
from brainfed.reporting.figures._style import drawing
from brainfed.runtime import Streams, UserError, read_arrays, write_arrays, write_table


def write_cohort(folder, *, subjects=120, institutions=3, k=10):
    """A cohort in which nothing but chance is alike: `global_cut.safetensors`, `local.safetensors`, `split.parquet`."""
    random = np.random.default_rng(0)
    institution = random.permutation(subjects) % institutions
    ids = [f"s{number:03d}" for number in range(subjects)]
    names = [f"institution-{number + 1}" for number in institution]
    write_table(folder / "split.parquet", pd.DataFrame({"subject": ids[::-1], "institution": names[::-1], "fold": 0}))
    features, age = random.standard_normal((subjects, 20)), random.uniform(8, 20, subjects)
    sex = random.integers(0, 2, subjects)
    for scope in ("global_cut", "local"):
        settings = GraphSettings(scope=scope, k=k, embedding_dimensions=5)
        graph = build_graph(
            features, institution, site=np.zeros(subjects, dtype=np.int64), sex=sex, age=age, settings=settings,
            streams=Streams(0),
        )  # fmt: skip
        write_edges(folder / f"{scope}.safetensors", ids, graph, graph.cut)


def write_edges(path, ids, edges, cut=None):
    arrays = {"row": edges.row, "column": edges.column, "weight": np.asarray(edges.weight, dtype=np.float32)}
    if cut is not None:
        arrays |= {"cut_row": cut.row, "cut_column": cut.column, "cut_weight": cut.weight.astype(np.float32)}
    write_arrays(path, arrays, {"subjects": ids})


def read(folder, *, own=True):
    local = folder / "local.safetensors" if own else None
    return read_scope_graphs(folder / "global_cut.safetensors", local, folder / "split.parquet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cohort")
    write_cohort(path)
    return path


def edges_of(folder, scope, prefix=""):
    """The edges of an artefact as unordered pairs of positions."""
    arrays = read_arrays(folder / f"{scope}.safetensors").arrays
    pairs = zip(arrays[f"{prefix}row"].tolist(), arrays[f"{prefix}column"].tolist(), strict=True)
    return {frozenset(pair) for pair in pairs if pair[0] != pair[1]}


def drawn_lines(graphs, piece):
    """One list a panel: (style, the two subjects) of every line in the figure, found by where the line ends."""
    at = {
        tuple(np.round(place, 9)): member
        for place, member in zip(_layout(graphs, piece)[0], piece.members, strict=True)
    }
    with drawing():
        figure = scope_figure(graphs, piece)
    return [
        [
            (bool(collection.get_linestyle()[0][1]), frozenset(int(at[tuple(np.round(end, 9))]) for end in line))
            for collection in axes.collections
            if isinstance(collection, LineCollection)
            for line in collection.get_segments()
        ]
        for axes in figure.axes
    ]


def test_every_line_is_an_edge_of_its_graph_and_every_edge_between_the_drawn_a_line(folder):
    graphs = read(folder)
    piece = choose_piece(graphs)
    held = set(piece.members.tolist())
    kept, removed, own = (edges_of(folder, *which) for which in (("global_cut",), ("global_cut", "cut_"), ("local",)))
    whole, cut, local = drawn_lines(graphs, piece)
    inside = [{pair for pair in pairs if pair <= held} for pairs in (kept | removed, kept, removed, own)]
    assert all(inside)
    assert [
        sorted(map(sorted, found))
        for found in (
            [pair for _, pair in whole],
            [pair for dashed, pair in cut if not dashed],
            [pair for dashed, pair in cut if dashed],
            [pair for _, pair in local],
        )
    ] == [sorted(map(sorted, pairs)) for pairs in inside]
    assert not any(dashed for dashed, _ in [*whole, *local])


def test_dashed_lines_join_institutions_and_the_others_of_a_cut_graph_none(folder):
    graphs = read(folder)
    _, cut, local = drawn_lines(graphs, choose_piece(graphs))
    across = [(dashed, len({graphs.institution[end] for end in pair}) == 2) for dashed, pair in [*cut, *local]]
    assert {dashed for dashed, _ in across} == {True, False}
    assert all(dashed == joins for dashed, joins in across)


@pytest.mark.parametrize("own", [True, False])
def test_the_piece_is_the_same_at_every_reading_and_hangs_together(folder, own):
    first, again = (choose_piece(read(folder, own=own)) for _ in range(2))
    assert np.array_equal(first.members, again.members) and first.institutions == again.institutions
    graphs = read(folder, own=own)
    edges = [graphs.kept, graphs.removed, *([graphs.own] if own else [])]
    network = nx.Graph()
    network.add_nodes_from(range(len(first.members)))
    for each in edges:
        network.add_edges_from(first.pairs(each).tolist())
    assert nx.is_connected(network) and first.members[0] == first.subject
    assert len(set(first.members.tolist())) == len(first.members) <= SUBJECTS
    assert first.institutions[0] == graphs.institution[first.subject]
    assert set(first.institutions) == set(graphs.institution[first.members])


def test_the_subject_is_a_typical_one(folder):
    graphs = read(folder)
    subject = choose_piece(graphs).subject
    for panel in graphs.panels:
        assert abs(panel.degrees[subject] - np.median(panel.degrees)) <= 1


def test_many_neighbours_and_institutions_are_drawn_in_part_and_counted_in_full(tmp_path):
    write_cohort(tmp_path, institutions=8, k=40)
    graphs = read(tmp_path)
    piece = choose_piece(graphs)
    assert len(piece.members) == SUBJECTS and len(piece.institutions) <= INSTITUTIONS
    with drawing():
        said = scope_figure(graphs, piece).axes[0].texts[0].get_text()
    count = int(graphs.panels[0].degrees[piece.subject])
    drawn = len(np.union1d(piece.neighbours(graphs.kept), piece.neighbours(graphs.removed)))
    assert drawn < count and said == f"Ringed subject: {count} neighbours ({drawn} drawn)"


def write_square(folder, pairs, cut):
    """Four subjects, two an institution; edges as pairs of positions, both directions and self-loops added."""
    ids = ["a", "b", "c", "d"]
    split = pd.DataFrame({"subject": ids, "institution": ["north", "north", "south", "south"], "fold": 0})
    write_table(folder / "split.parquet", split)
    loops = [(node, node) for node in range(4)]
    both = [np.array([*one, *((j, i) for i, j in one), *own], dtype=np.int64).reshape(-1, 2).T
            for one, own in ((pairs, loops), (cut, []))]  # fmt: skip
    arrays = {f"{name}{end}": ends for name, held in zip(("", "cut_"), both, strict=True)
              for end, ends in zip(("row", "column"), held, strict=True)}  # fmt: skip
    arrays |= {f"{name}weight": np.ones(held.shape[1], dtype=np.float32) for name, held in
               zip(("", "cut_"), both, strict=True)}  # fmt: skip
    write_arrays(folder / "global_cut.safetensors", arrays, {"subjects": ids})


def test_the_numbers_of_a_square_are_those_counted_by_hand(tmp_path):
    """Edges a-b, c-d inside, a-c, b-d between: 2 neighbours each, 1 after the cut; the first subject is drawn."""
    write_square(tmp_path, [(0, 1), (2, 3)], [(0, 2), (1, 3)])
    graphs = read(tmp_path, own=False)
    assert finding(graphs) == "The cut leaves a subject 1.0 of its 2.0 neighbours on average"
    piece = choose_piece(graphs)
    assert (piece.members.tolist(), piece.institutions) == ([0, 1, 2], ("north", "south"))
    with drawing():
        whole, cut = scope_figure(graphs, piece).axes
    assert [axes.texts[0].get_text() for axes in (whole, cut)] == [
        "Ringed subject: 2 neighbours",
        "Ringed subject: 1 neighbour, 1 removed",
    ]
    assert drawn_lines(graphs, piece) == [[(False, {0, 1}), (False, {0, 2})], [(False, {0, 1}), (True, {0, 2})]]


def test_the_finding_has_the_mean_of_the_own_graphs_if_they_exist(folder):
    graphs = read(folder)
    said = finding(graphs)
    whole, cut, own = (f"{panel.degrees.mean():.1f}" for panel in graphs.panels)
    assert said.endswith(f"in its institution\u2019s own graph it has {own}")
    assert f"{cut} of its {whole}" in said


@pytest.mark.parametrize("pairs", [[], [(0, 1)]])
def test_a_graph_without_an_edge_between_institutions_is_drawn_too(tmp_path, pairs):
    write_square(tmp_path, pairs, [])
    draw_scopes(
        str(tmp_path / "global_cut.safetensors"), None, str(tmp_path / "split.parquet"), str(tmp_path / "scopes.svg")
    )
    assert "<dc:title>The cut leaves a subject" in (tmp_path / "scopes.svg").read_text()


def test_own_graphs_of_other_subjects_are_refused(folder, tmp_path):
    write_square(tmp_path, [(0, 1)], [])
    with pytest.raises(UserError, match="its subjects are not those of the graph that was cut"):
        read_scope_graphs(
            folder / "global_cut.safetensors", tmp_path / "global_cut.safetensors", folder / "split.parquet"
        )
