"""Scores of institutions without training subjects in a fold, if there is no global model."""

import numpy as np
import torch
from numpy.typing import NDArray

from brainfed.engines.stacked.network import StackedNetwork
from brainfed.engines.stacked.stacks import Member, Reading, stack_inputs
from brainfed.samples.inputs import MethodInputs


def score_unseen(
    inputs: MethodInputs, network: StackedNetwork, reading: Reading, round_scores: NDArray[np.float64]
) -> None:
    """Write the mean probability of the others' last models into round_scores (T, F, n, C)."""
    stack = network.stack
    seen = (stack.labels >= 0).any(dim=2).cpu().numpy()
    for position, fold in enumerate(stack.folds):
        for unseen in np.flatnonzero(~seen[:, position]):
            nodes = stack.members[unseen].nodes
            foreign = [
                _score_elsewhere(inputs, network, reading, (int(teacher), position), nodes)
                for teacher in np.flatnonzero(seen[:, position])
            ]
            tested = inputs.fold[nodes] == fold
            round_scores[:, fold, nodes[tested]] = np.nan
            round_scores[-1, fold, nodes[tested]] = np.mean(foreign, axis=0)[tested]


@torch.no_grad()
def _score_elsewhere(
    inputs: MethodInputs,
    network: StackedNetwork,
    reading: Reading,
    teacher: tuple[int, int],
    nodes: NDArray[np.int64],
) -> NDArray[np.float64]:
    """(n, C) probabilities of an institution's nodes by another institution's model of one fold."""
    place, position = teacher
    scaling, one = network.stack.members[place], slice(position, position + 1)
    mean = None if scaling.mean is None else scaling.mean[one]
    sd = None if scaling.sd is None else scaling.sd[one]
    visited = stack_inputs(inputs, (Member(nodes, mean, sd),), network.stack.folds[one], reading)
    model = network.on(visited)
    model.load({name: view[place, one] for name, view in network.stacks().items()})
    return np.asarray(model.probabilities()[0, 0].cpu().numpy(), dtype=np.float64)
