"""The torch side of FedSage+'s classifier: FedAvg over GraphSAGE on the mended graphs (Zhang et al. 2021)."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from brainfed.engines.stacked.stacks import Stack, members, stack_graphs, stack_inputs
from brainfed.engines.stacked.training import StackSize, dropout_of, train_stacks
from brainfed.federation.ledger import Ledger
from brainfed.graphs.neighbour_mean import neighbour_mean
from brainfed.methods.fedsage.fedsage_plus import METHOD, FedSagePlusSettings
from brainfed.models.sage_network import SageNetwork
from brainfed.models.stacked_network import CLASSES
from brainfed.runtime.jobs.run import Run
from brainfed.samples.fused import with_generated, without_generated
from brainfed.samples.inputs import MethodInputs, Outcome


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
    d, (hidden_0, hidden_1) = inputs.features[0].shape[1], settings.hidden
    ledger = Ledger(
        METHOD.shared_tensors, {"features": d, "hidden-0": hidden_0, "hidden-1": hidden_1, "classes": CLASSES}
    )

    def build(folds: Sequence[int]) -> tuple[Stack, SageNetwork]:
        trained = members(inputs, folds, pooled=False, standardise=settings.standardise == "institution")
        stack = stack_inputs(inputs, trained, folds, graph=False, device=device, dtype=dtype)
        means = stack_graphs(inputs, trained, folds, neighbour_mean, dtype).to(device)
        return stack, SageNetwork(
            d,
            settings.hidden,
            stack.designs,
            means,
            folds,
            inputs.streams,
            device,
            dtype,
            settings.precision,
            dropout_of(settings.dropout, folds, inputs.streams, settings),
        )

    size = StackSize(_parameters(d, settings), 2 * hidden_0, 2 * int(len(inputs.features) > 1))
    return train_stacks(inputs, settings, run, ledger, build, size)


def _parameters(d: int, settings: FedSagePlusSettings) -> int:
    """Learnable numbers of one model."""
    hidden_0, hidden_1 = settings.hidden
    weights = 2 * d * hidden_0 + 2 * hidden_0 * hidden_1 + hidden_1 * CLASSES
    return weights + hidden_0 + hidden_1 + CLASSES
