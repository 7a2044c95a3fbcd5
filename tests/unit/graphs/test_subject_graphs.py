"""Graphs of single subjects: connectomes and normalised spatial graphs, by their definitions."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from brainfed.graphs import ConnectomeSettings, correlation_adjacency, matrices, read_connectivity, write_connectomes
from brainfed.imaging import displacements, to_matrices
from brainfed.runtime import UserError, read_arrays
from reference import connectome
from reference import series as plain
from support.files.connectome_files import built, correlations, edges_of, ids, write_features

CASES = st.fixed_dictionaries(
    {
        "subjects": st.integers(1, 6),
        "regions": st.integers(2, 9),
        "seed": st.integers(0, 2**16),
        "chosen": st.one_of(
            st.fixed_dictionaries({"edges": st.just("proportional"), "density": st.floats(0.01, 1.0)}),
            st.fixed_dictionaries({"edges": st.just("absolute"), "threshold": st.floats(0.0, 0.01)}),
        ),
        "connectivity": st.sampled_from(["pearson", "tangent"]),
        "levels": st.sampled_from([3, 1000]),
        "entries": st.sampled_from([1, 100, 2**21]),
    }
)


def drawn(case):
    """Features with many ties (3 levels) or hardly any; the first connection is never 0."""
    tangent = case["connectivity"] == "tangent"
    width = case["regions"] * (case["regions"] + (1 if tangent else -1)) // 2
    levels = np.random.default_rng(case["seed"]).integers(
        -case["levels"], case["levels"] + 1, (case["subjects"], width)
    )
    levels[:, 1 if tangent else 0] = case["levels"]
    return (levels / case["levels"]).astype(np.float32)


def graphs_of(case, features):
    with TemporaryDirectory() as folder:
        graphs = built(Path(folder), features, case["regions"], case["connectivity"], case["entries"], **case["chosen"])
        return graphs.of(np.arange(len(graphs))[::-1]).of(np.arange(len(graphs))[::-1])


@settings(deadline=None, max_examples=120)
@given(case=CASES)
def test_the_file_equals_the_plain_definition(case):
    features = drawn(case)
    graphs = graphs_of(case, features)
    usual = ConnectomeSettings(**case["chosen"])
    for subject, row in enumerate(features):
        square = connectome.matrix(row, case["regions"], case["connectivity"] == "tangent")
        nodes, edges = connectome.graph(square, usual.edges, usual.density, usual.threshold)
        np.testing.assert_array_equal(graphs.nodes[slice(*graphs.node_start[subject : subject + 2])], nodes)
        assert edges_of(graphs, subject) == {pair: float(weight) for pair, weight in edges.items()}


@settings(deadline=None, max_examples=60)
@given(case=CASES)
def test_edges_are_symmetric_signed_and_in_order_without_loops(case):
    graphs = graphs_of(case, drawn(case))
    for subject in range(len(graphs)):
        edges = edges_of(graphs, subject)
        nodes = graphs.nodes[slice(*graphs.node_start[subject : subject + 2])]
        assert list(edges) == sorted(edges)
        assert len(edges) == np.diff(graphs.edge_start)[subject] > 0
        for (source, target), weight in edges.items():
            assert source != target and edges[target, source] == weight == nodes[source, target] != 0
        strengths = np.abs(nodes[np.triu_indices(case["regions"], 1)])
        left_out = np.sort(strengths)[: len(strengths) - len(edges) // 2]
        assert max(left_out, default=0) <= min(abs(weight) for weight in edges.values())


@pytest.mark.parametrize(("density", "kept"), [(0.1, 2), (0.2, 3), (0.5, 8), (1.0, 15), (0.001, 1)])
def test_the_density_is_the_share_of_connections(tmp_path, density, kept):
    graphs = built(tmp_path, correlations(), 6, density=density)
    assert set(np.diff(graphs.edge_start)) == {2 * kept}


def test_the_threshold_itself_is_an_edge_and_so_is_its_negative(tmp_path):
    features = np.array([[0.5, -0.5, 0.25]], dtype=np.float32)
    assert edges_of(built(tmp_path, features, 3, edges="absolute", threshold=0.5), 0) == {
        (0, 1): 0.5, (1, 0): 0.5, (0, 2): -0.5, (2, 0): -0.5
    }  # fmt: skip


def test_of_equal_entries_those_of_the_first_regions_stay(tmp_path):
    features = np.array([[0.5, -0.5, 0.5, 0.5, -0.5, 0.5]], dtype=np.float32)
    assert [pair for pair in edges_of(built(tmp_path, features, 4, density=0.5), 0) if pair[0] < pair[1]] == [
        (0, 1), (0, 2), (0, 3)
    ]  # fmt: skip


def test_an_entry_of_0_is_no_edge(tmp_path):
    features = np.array([[0.5, 0, 0]], dtype=np.float32)
    for chosen in ({"density": 1.0}, {"edges": "absolute", "threshold": 0.0}):
        assert set(edges_of(built(tmp_path, features, 3, **chosen), 0)) == {(0, 1), (1, 0)}


@pytest.mark.parametrize("seed", range(3))
def test_a_permutation_of_regions_permutes_the_graphs(tmp_path, seed):
    features, regions = correlations(5, 8), 8
    order = np.random.default_rng(seed).permutation(regions)
    permuted = matrices(features, regions)[:, order][:, :, order][:, *np.triu_indices(regions, 1)]
    plain, moved = built(tmp_path, features, regions, density=0.3), built(tmp_path, permuted, regions, density=0.3)
    for subject in range(5):
        renamed = {(order[a], order[b]): weight for (a, b), weight in edges_of(moved, subject).items()}
        assert renamed == edges_of(plain, subject)
        np.testing.assert_array_equal(
            moved.nodes[subject * regions : (subject + 1) * regions],
            plain.nodes[subject * regions : (subject + 1) * regions][order][:, order],
        )


def test_a_subject_has_the_same_graph_whoever_is_beside_it(tmp_path):
    features = correlations(6)
    everybody, alone = built(tmp_path, features, 6), built(tmp_path, features[3:4], 6)
    assert edges_of(everybody, 3) == edges_of(alone, 0)


@pytest.mark.parametrize("entries", [1, 72, 2**21])
def test_the_size_of_blocks_changes_no_byte(tmp_path, entries):
    built(tmp_path, correlations(), 6)
    whole = (tmp_path / "connectomes.safetensors").read_bytes()
    built(tmp_path, correlations(), 6, entries=entries)
    assert (tmp_path / "connectomes.safetensors").read_bytes() == whole


def test_the_matrices_are_those_of_the_features():
    np.testing.assert_array_equal(matrices(correlations(), 6), to_matrices(correlations()).astype(np.float32))
    drawn = np.random.default_rng(0).standard_normal((3, 5, 40))
    tangent = [np.cov(series) for series in drawn]
    vectors = displacements(np.array(tangent), np.eye(5)).astype(np.float32)
    for square, found in zip(tangent, matrices(vectors, 5, tangent=True), strict=True):
        values, axes = np.linalg.eigh(square)
        np.testing.assert_allclose(found, (axes * np.log(values)) @ axes.T, atol=1e-5)


def test_only_included_subjects_have_a_graph(tmp_path):
    path = write_features(tmp_path / "features.safetensors", correlations(), 6)
    measured = read_connectivity(str(path), {"s01", "s04", "elsewhere"})
    write_connectomes(tmp_path / "some.safetensors", measured, ConnectomeSettings(), {"regions": ["a"]})
    built(tmp_path, correlations(), 6)
    some, everybody = (read_arrays(tmp_path / f"{name}.safetensors") for name in ("some", "connectomes"))
    assert (some.subjects, some.metadata["regions"]) == (("s01", "s04"), ["a"])
    np.testing.assert_array_equal(
        some.arrays["nodes"].reshape(2, 6, 6), everybody.arrays["nodes"].reshape(7, 6, 6)[[1, 4]]
    )


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("connectivity", ["pearson", "tangent"])
def test_a_value_that_is_not_finite_names_its_subject(tmp_path, value, connectivity):
    features = np.ones((4, 15 if connectivity == "pearson" else 21), dtype=np.float32)
    features[2, 0] = value
    with pytest.raises(UserError, match=r"features\.safetensors: the values of subject 's02' are not finite"):
        built(tmp_path, features, 6, connectivity)


def test_a_value_of_a_subject_that_is_left_out_does_no_harm(tmp_path):
    features = correlations()
    features[0] = np.nan
    path = write_features(tmp_path / "features.safetensors", features, 6)
    measured = read_connectivity(str(path), set(ids(7)[1:]))
    write_connectomes(tmp_path / "some.safetensors", measured, ConnectomeSettings(), {})
    assert len(read_arrays(tmp_path / "some.safetensors").subjects) == 6


def test_a_subject_without_any_connection_is_named(tmp_path):
    features = correlations()
    features[5] = 0
    with pytest.raises(UserError, match=r"a connection other than 0 in every subject, found none in 's05'"):
        built(tmp_path, features, 6)


def test_a_threshold_that_leaves_graphs_empty_says_how_many_and_how_far_to_lower_it(tmp_path):
    features = np.full((4, 15), 0.7, dtype=np.float32)
    features[1:3], features[2, 3] = 0.1, -0.25
    words = r"found none in 2 of 4 subjects at 0\.5 \(the largest entry of 's01' is 0\.1\)"
    with pytest.raises(UserError, match=words):
        built(tmp_path, features, 6, edges="absolute", threshold=0.5)


@pytest.mark.parametrize("regions", [0, 1])
def test_a_connectome_of_one_region_has_no_connection(tmp_path, regions):
    with pytest.raises(UserError, match=f"expected two regions or more.*found {regions}"):
        built(tmp_path, np.zeros((3, 0), dtype=np.float32), regions)


def test_features_that_do_not_fit_their_regions_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"expected features \(7, 10\) of 5 regions, found \(7, 15\)"):
        built(tmp_path, correlations(), 5)


def test_two_equal_regions_one_opposite_and_one_silent():
    signal = np.array([1, 2, 3, 5], dtype=np.float32)
    series = np.stack([signal, 3 * signal, -signal, np.full(4, 0.1, dtype=np.float32)], axis=1)
    expected = [[0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    found = correlation_adjacency(series)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(("timepoints", "regions"), [(2, 3), (40, 1), (30, 12), (8, 20)])
def test_it_is_its_definition(timepoints, regions):
    drawn = np.random.default_rng(regions).standard_normal((timepoints, regions)).astype(np.float32)
    drawn[:, regions // 2] = 0
    np.testing.assert_allclose(correlation_adjacency(drawn), plain.normalised_adjacency(drawn), atol=1e-6)


@given(arrays(np.float32, st.tuples(st.integers(2, 12), st.integers(1, 6)), elements=st.floats(-5, 5, width=16)))
def test_every_series_has_a_symmetric_graph_with_eigenvalues_between_minus_1_and_1(series):
    found = correlation_adjacency(series)
    assert np.isfinite(found).all() and (found >= 0).all() and (np.diag(found) > 0).all()
    np.testing.assert_allclose(found, found.T, atol=1e-6)
    assert np.abs(np.linalg.eigvalsh(found.astype(np.float64))).max() <= 1 + 1e-5


def test_offset_and_scale_of_a_region_change_nothing():
    drawn = np.random.default_rng(0).standard_normal((50, 6)).astype(np.float32)
    scaled = drawn * np.array([1, 2, 4, 8, 16, 32], dtype=np.float32) + np.float32(3)
    np.testing.assert_allclose(correlation_adjacency(scaled), correlation_adjacency(drawn), atol=1e-5)
