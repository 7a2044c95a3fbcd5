"""Rounds of FedMLP and FedGCN: a loop of PyTorch (with PyG's `GCNConv`) over folds and institutions, and ours.

Both average by training subjects and score the test subjects after every round. The two sides add up in another order,
and Adam makes rounding larger where gradients are small. That they do the same work is therefore shown in float64.
"""

from functools import partial

import numpy as np
import torch
from made_up_cohort import MadeUpCohort

from brainfed.methods import FederatedClassifierSettings
from brainfed.methods.gcn.declaration import FedGCNSettings
from brainfed.methods.gcn.train import train_fedgcn
from brainfed.methods.mlp.train import train_fedmlp
from brainfed.runtime.jobs import Run
from brainfed.samples import MethodInputs
from peers.comparison import Comparison, Result, agreed, compared, named, timed
from peers.institution import State, institution_of, network_of

TOLERANCE, EXACT = 1e-2, 1e-9
"""Largest difference of a probability in float32 and in float64."""


def fedmlp(quick: bool) -> Comparison:
    """FedMLP without a graph."""
    return _by_loop(quick, graph=False)


def fedgcn(quick: bool) -> Comparison:
    """FedGCN on the population graph."""
    return _by_loop(quick, graph=True)


def cohort(quick: bool) -> tuple[MethodInputs, int]:
    """Inputs of a repeat, and the rounds."""
    features, subjects, rounds = (300, 150, 2) if quick else (7381, 871, 3)
    return MadeUpCohort(features, subjects).method_inputs(), rounds


def settings_of(rounds: int, *, graph: bool) -> FederatedClassifierSettings | FedGCNSettings:
    """The default settings without noise, means weighed by training subjects."""
    return (FedGCNSettings if graph else FederatedClassifierSettings)(rounds=rounds, noise=0.0, weighting="subjects")


def by_brainfed(inputs: MethodInputs, rounds: int, *, graph: bool, dtype: torch.dtype = torch.float32) -> Result:
    """(T, F, n) probabilities after every round."""
    train = train_fedgcn if graph else train_fedmlp
    run = Run(precision="float64" if dtype == torch.float64 else "float32", progress=lambda *_, **__: None)
    return train(inputs, settings_of(rounds, graph=graph), run).round_scores[..., 1]


def by_loop(inputs: MethodInputs, rounds: int, *, graph: bool, dtype: torch.dtype = torch.float32) -> Result:
    """(T, F, n) probabilities after every round."""
    settings = settings_of(rounds, graph=graph)
    scores = np.full((rounds, *inputs.labels.shape), np.nan)
    for fold in range(inputs.folds):
        network = network_of(inputs, graph=graph, fold=fold, dtype=dtype)
        codes = range(len(inputs.institutions))
        places = [institution_of(inputs, code, fold, graph=graph, dtype=dtype) for code in codes]
        shared = _copied(network.state_dict())
        for number in range(rounds):
            uploads = []
            for place in places:
                network.load_state_dict(shared)
                place.train(network, settings.local_epochs, settings.learning_rate)
                uploads.append(_copied(network.state_dict()))
            shared = _mean(uploads, torch.tensor([len(place.labels) for place in places], dtype=dtype))
            network.load_state_dict(shared)
            for place in places:
                scores[number, fold, place.subjects] = place.probabilities(network)
    return scores


def _copied(state: State) -> State:
    return {name: value.clone() for name, value in state.items()}


def _mean(states: list[State], sizes: torch.Tensor) -> State:
    shares = sizes / sizes.sum()
    return {name: torch.einsum("m,m...->...", shares, torch.stack([one[name] for one in states])) for name in states[0]}


def _by_loop(quick: bool, *, graph: bool) -> Comparison:
    inputs, rounds = cohort(quick)
    name = "FedGCN" if graph else "FedMLP"
    theirs, ours = (partial(side, inputs, rounds, graph=graph) for side in (by_loop, by_brainfed))
    exact = agreed(f"{name} in float64", theirs(dtype=torch.float64), ours(dtype=torch.float64), EXACT)
    shape = f"{len(inputs.subjects)} subjects, {inputs.features[0].shape[1]:,} features, {inputs.folds} folds"
    work = f"{shape}, {rounds} rounds of {settings_of(rounds, graph=graph).local_epochs} epochs"
    peer = named("torch", "torch_geometric") if graph else named("torch")
    what = f"{work}: probabilities after every round"
    return compared(name, f"{peer} (loop)", what, timed(theirs), timed(ours), TOLERANCE, exact)
