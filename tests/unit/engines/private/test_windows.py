"""Windows and graphs that a network on region series reads."""

import numpy as np
import torch

from brainfed.engines.private import Moment, SeriesWindows, mean_adjacencies
from brainfed.federation import Ledger
from brainfed.graphs import correlation_adjacency, normalised, positive_correlations
from brainfed.methods.fglbc.declaration import MEAN_ADJACENCY
from support.samples.series_cohort import WINDOW, series_inputs

MOMENT = Moment(0, 0, 0)


def windows_of(inputs, **graphs):
    members = [inputs.members(place) for place in range(len(inputs.institutions))]
    return members, SeriesWindows(inputs, members, WINDOW, **graphs)


def test_every_subject_has_one_window_a_step_and_covering_windows_to_score():
    inputs = series_inputs(45)
    members, windows = windows_of(inputs)
    samples = torch.tensor([3, 0, 8])
    own = members[1][samples.numpy()]
    assert windows.windows_of(1, 0, samples, MOMENT).tolist() == [1, 1, 1]
    counts = [-(-int(length) // WINDOW) for length in inputs.lengths[own]]
    assert windows.windows_of(1, 0, samples, None).tolist() == counts and max(counts) > 1
    found, graphs = windows.arguments(1, 0, samples, None)
    assert found.shape == (sum(counts), WINDOW, inputs.regions)
    for subject, rows, squares in zip(own, found.split(counts), graphs.split(counts), strict=True):
        series = inputs.subject(subject)
        np.testing.assert_array_equal(rows[0], np.resize(series, (WINDOW, inputs.regions)))
        if len(series) >= WINDOW:
            np.testing.assert_array_equal(rows[-1], series[-WINDOW:])
        for square in squares:
            np.testing.assert_array_equal(square, correlation_adjacency(series))


def test_a_window_of_training_is_keyed_by_place_fold_and_step():
    inputs = series_inputs(45, lengths=np.full(45, 200))
    _, windows = windows_of(inputs)
    samples = torch.tensor([2])

    def first(place=0, position=0, moment=MOMENT):
        return windows.arguments(place, position, samples, moment)[0].numpy().tobytes()

    others = [first(1), first(0, 1), *(first(moment=Moment(*np.eye(3, dtype=int)[axis])) for axis in range(3))]
    assert first() == first() and len({first(), *others}) == 6


def test_a_shared_graph_is_the_mean_over_training_subjects_of_its_pool():
    inputs = series_inputs(45, split="leave-one-site-out")
    pools = [inputs.members(0), inputs.members(1)]
    ledger = Ledger(MEAN_ADJACENCY, {"regions": inputs.regions})
    found = mean_adjacencies(inputs, pools, ledger).reshape(2, inputs.folds, inputs.regions, inputs.regions)
    matrices = np.stack([positive_correlations(inputs.subject(each)) for each in range(45)])
    own, training = inputs.institution == 1, inputs.training(0)
    np.testing.assert_allclose(found[1, 0], normalised(matrices[own & training].mean(axis=0)), rtol=1e-6)
    np.testing.assert_allclose(found[0, 0], normalised(matrices[training].mean(axis=0)), rtol=1e-6)
    means = np.arange(2 * inputs.folds).reshape(2, inputs.folds)
    windows = SeriesWindows(inputs, pools, WINDOW, means, found.reshape(-1, inputs.regions, inputs.regions))
    _, graphs = windows.arguments(1, 2, torch.tensor([0, 4]), MOMENT)
    for graph in graphs:
        np.testing.assert_array_equal(graph, found[1, 2])
