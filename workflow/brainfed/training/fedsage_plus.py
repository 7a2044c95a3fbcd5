"""The torch side of FedSage+'s classifier: FedAvg over GraphSAGE on the mended graphs (Zhang et al. 2021)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from brainfed.federation.exchange import Ledger
from brainfed.federation.rounds import local_steps, run_rounds
from brainfed.graphs.neighbour_mean import neighbour_mean
from brainfed.graphs.propagation import dense_block
from brainfed.methods.fedsage_plus import METHOD, FedSagePlusSettings
from brainfed.models.sage_network import SageNetwork
from brainfed.models.stacked_network import CLASSES
from brainfed.runtime.run import Run
from brainfed.training.crossings import record_help_for_unseen
from brainfed.training.fused import with_generated, without_generated
from brainfed.training.inputs import MethodInputs, Outcome
from brainfed.training.stacked import STACK_BYTES, collect
from brainfed.training.stacking import Member, members, stack_inputs


def train(inputs: MethodInputs, settings: FedSagePlusSettings, run: Run) -> Outcome:
    """Train FedSage+'s classifier on one repeat's fused graphs."""
    outcome = train_sage(with_generated(inputs), settings, run)
    return without_generated(outcome, len(inputs.subjects))


def train_sage(inputs: MethodInputs, settings: FedSagePlusSettings, run: Run) -> Outcome:
    """Train a federated GraphSAGE on the graphs of `inputs`; see `Outcome` for the shapes.

    An institution without training subjects in a fold is scored by the global model.
    """
    device, dtype = torch.device(run.device), getattr(torch, run.precision)
    if len(inputs.graphs) > len(inputs.features):
        inputs = replace(inputs, features=inputs.features * inputs.folds)
    d = inputs.features[0].shape[1]
    hidden_0, hidden_1 = settings.hidden
    axes = {"features": d, "hidden-0": hidden_0, "hidden-1": hidden_1, "classes": CLASSES}
    ledger = Ledger(METHOD.crosses, axes)
    round_scores = np.full((settings.rounds, inputs.folds, len(inputs.subjects)), np.nan)
    losses = np.full((settings.rounds, len(inputs.institutions), inputs.folds), np.nan)
    for folds in _chunks(inputs, _parameters(d, settings), dtype):
        trained = members(inputs, folds, pooled=False, standardise=settings.standardise == "institution")
        stack = stack_inputs(inputs, trained, folds, graph=False, device=device, dtype=dtype)
        means = _means(inputs, trained, folds, stack.labels.shape[2], dtype).to(device)
        network = SageNetwork(d, settings.hidden, stack.designs, means, folds, inputs.streams, device, dtype)
        chunk_ledger = ledger if folds[0] == 0 else replace(ledger, _rows={})
        curves = run_rounds(
            network,
            stack.labels,
            [inputs.subjects_among(member.nodes) for member in trained],
            settings,
            folds,
            inputs.streams,
            chunk_ledger,
            run.checkpoint.part(f"folds-{folds[0]}-{folds[-1]}"),
            run.progress,
        )
        collect(inputs, stack, curves, folds, round_scores, losses)
        record_help_for_unseen(stack, {}, chunk_ledger)
    counts = {
        "parameters": _parameters(d, settings),
        "rounds": settings.rounds,
        "local_epochs": settings.local_epochs,
        "first_layer_operations": _operations(inputs, settings),
    }
    return Outcome(round_scores[-1], "probability", round_scores, losses, counts, ledger.rows())


def _parameters(d: int, settings: FedSagePlusSettings) -> int:
    """Learnable numbers of one model."""
    hidden_0, hidden_1 = settings.hidden
    weights = 2 * d * hidden_0 + 2 * hidden_0 * hidden_1 + hidden_1 * CLASSES
    return weights + hidden_0 + hidden_1 + CLASSES


def _chunks(inputs: MethodInputs, parameters: int, dtype: torch.dtype) -> list[tuple[int, ...]]:
    """Folds whose weights, gradients, moments and own features fit into `STACK_BYTES` side by side."""
    numbers = 4 * len(inputs.institutions) * parameters
    if len(inputs.features) > 1:
        numbers += 4 * inputs.features[0].size
    side_by_side = max(1, STACK_BYTES // (numbers * dtype.itemsize))
    folds = tuple(range(inputs.folds))
    return [folds[start : start + side_by_side] for start in range(0, inputs.folds, side_by_side)]


def _means(
    inputs: MethodInputs, trained: tuple[Member, ...], folds: Sequence[int], width: int, dtype: torch.dtype
) -> Tensor:
    """(M, 1 or F, n, n) what averages over each institution's neighbours, zero-padded."""
    graphs = [inputs.graphs[fold] for fold in folds] if len(inputs.graphs) > 1 else [inputs.graphs[0]]
    means = torch.zeros(len(trained), len(graphs), width, width, dtype=dtype)
    for position, graph in enumerate(graphs):
        row, column, share = neighbour_mean(graph)
        for index, member in enumerate(trained):
            block = dense_block(row, column, share, member.nodes, graph.nodes)
            means[index, position, : len(member.nodes), : len(member.nodes)] = torch.from_numpy(block).to(dtype)
    return means


def _operations(inputs: MethodInputs, settings: FedSagePlusSettings) -> int:
    """Multiplications and additions on the features, forward and weight gradient, over all steps and folds."""
    sizes = [inputs.subjects_among(inputs.members(institution)) for institution in range(len(inputs.institutions))]
    steps = local_steps(sizes, settings, inputs.streams)
    columns = 2 * settings.hidden[0]
    return round(steps / len(sizes) * 2 * 2 * inputs.features[0].size * columns * inputs.folds)
