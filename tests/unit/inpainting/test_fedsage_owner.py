"""The impaired graph of one FedSage+ owner, its targets and its scaled features."""

from dataclasses import replace

import numpy as np
import torch

from brainfed.graphs.graph import Graph
from brainfed.inpainting.fedsage.owner import hidden_nodes, owners_of, row_normalised, scaled_members
from brainfed.inpainting.scaling import scaling_of
from reference.fedsage import hidden_neighbours
from support.samples.fedsage_inputs import CPU, QUICK, cohort, widened


def test_a_tenth_of_each_institution_is_hidden_at_random():
    inputs = cohort(90)
    for institution in range(3):
        hidden = hidden_nodes(inputs, institution, 0.10)
        assert len(hidden) == 3
        assert set(hidden) <= set(inputs.members(institution))
        assert hidden.tolist() == hidden_nodes(inputs, institution, 0.10).tolist()
        assert hidden.tolist() != hidden_nodes(replace(inputs, part="fold-0"), institution, 0.10).tolist()


def test_one_node_stays_visible():
    assert len(hidden_nodes(cohort(), 0, 1.0)) == 14


def test_the_impaired_graph_is_induced_on_the_visible_nodes_and_rows_sum_to_one():
    inputs = cohort()
    for owner in owners_of(inputs, QUICK, CPU, torch.float64):
        hidden = hidden_nodes(inputs, owner.institution, 0.2)
        visible = [node for node in inputs.members(owner.institution) if node not in hidden]
        dense = np.zeros((45, 45))
        dense[inputs.graph.row, inputs.graph.column] = inputs.graph.weight
        block = dense[np.ix_(visible, visible)]
        expected = torch.from_numpy(block / block.sum(axis=1, keepdims=True))
        torch.testing.assert_close(owner.propagation, expected)
        torch.testing.assert_close(owner.propagated, expected @ torch.from_numpy(inputs.features[visible]).double())


def test_counts_and_targets_are_the_hidden_neighbours():
    inputs = cohort(seed=1)
    for owner in owners_of(inputs, QUICK, CPU, torch.float64):
        hidden = hidden_nodes(inputs, owner.institution, 0.2)
        visible = [node for node in inputs.members(owner.institution) if node not in hidden]
        missed = [hidden_neighbours(inputs.graph, node, hidden) for node in visible]
        assert owner.counts.tolist() == [len(found) for found in missed]
        assert owner.targeted.tolist() == [index for index, found in enumerate(missed) if found]
        for index, row in zip(owner.targeted.tolist(), owner.neighbours, strict=True):
            assert hidden[row.numpy()].tolist() == missed[index][: QUICK.targets]
        torch.testing.assert_close(owner.missing, torch.from_numpy(inputs.features[hidden]).double())


def test_all_hidden_neighbours_are_counted_and_a_random_choice_are_targets():
    hub, leaves = 0, [3, 6, 9, 12]
    edges = sorted([(hub, leaf) for leaf in leaves] + [(leaf, hub) for leaf in leaves] + [(hub, hub)])
    row, column = (np.array(ends) for ends in zip(*edges, strict=True))
    base = cohort()
    base = replace(
        base,
        graph=Graph(row, column, np.ones(len(row), dtype=np.float32), 45),
        fitted=np.isin(np.arange(45), [hub, *leaves]),
    )
    settings = replace(QUICK, hidden_fraction=0.8, targets=2)
    streams = (replace(base.streams, seed=seed) for seed in range(50))
    chosen = set()
    for inputs in (replace(base, streams=drawn) for drawn in streams):
        if hub not in hidden_nodes(inputs, 0, 0.8):
            (owner,) = owners_of(inputs, settings, CPU, torch.float64)
            assert owner.counts.tolist() == [4]
            assert owner.neighbours.sum().item() == 2
            chosen.add(tuple(owner.neighbours[0].tolist()))
    assert len(chosen) > 1


def test_a_node_whose_row_is_empty_gets_a_row_of_zeros():
    graph = Graph(np.array([0, 1]), np.array([1, 0]), np.array([2, 3], dtype=np.float32), 3)
    assert row_normalised(graph, np.arange(3)).tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


def test_measures_are_z_scored_by_the_institution_and_correlations_are_not():
    inputs = widened(cohort(), 40)
    members, scaling = inputs.members(1), scaling_of(inputs, 1)
    own = inputs.features[members].astype(float)
    np.testing.assert_allclose(scaling.centre, own.mean(axis=0))
    np.testing.assert_allclose(scaling.unit, 5 * own.std(axis=0))
    np.testing.assert_allclose(scaling.undo(scaled_members(inputs, 1)), own, rtol=1e-5, atol=1e-5)
    assert scaled_members(cohort(), 1).tobytes() == cohort().features[members].tobytes()
