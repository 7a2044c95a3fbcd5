"""The models of a stack that are kept: the weights and the scaling of every institution, one model a fold."""

import numpy as np
import torch
from numpy.typing import NDArray

from brainfed.engines.parameter_names import parameters_by_wire_name
from brainfed.engines.stacked.network import StackedNetwork
from brainfed.models.classifier import Classifier, class_probabilities
from brainfed.samples.inputs import FloatArray
from brainfed.samples.kept.fitted_model import Arrays, FittedModel, Scored, with_alike_shared


def kept_stack(network: StackedNetwork, *, alone: bool) -> list[FittedModel]:
    """The models of the stack's folds: weights by their names on the wire, and the moments `mean` and `sd` (d,).

    Args:
        network: trained.
        alone: whether every institution has a model of its own; one without training subjects then has none.
    """
    return [_of_fold(network, position, alone=alone) for position in range(len(network.stack.folds))]


def _of_fold(network: StackedNetwork, position: int, *, alone: bool) -> FittedModel:
    stack = network.stack
    arrays = {name: view[:, position].cpu().numpy().copy() for name, view in network.stacks().items()}
    means, sds = ([getattr(member, name) for member in stack.members] for name in ("mean", "sd"))
    if means[0] is not None:
        arrays |= {
            "mean": np.stack([mean[position] for mean in means]).astype(np.float32),
            "sd": np.stack([sd[position] for sd in sds]).astype(np.float32),
        }
    if alone:
        untrained = ~(stack.labels[:, position] >= 0).any(dim=1).cpu().numpy()
        for array in arrays.values():
            array[untrained] = np.nan
    return with_alike_shared({}, arrays)


@torch.no_grad()
def score_alone(module: Classifier, model: Arrays, features: FloatArray) -> Scored:
    """Probabilities (n, C) of features (n, d) by a module without a graph, in float64.

    Args:
        module: of the shape that was trained; its weights are overwritten.
        model: of one institution.
        features: unscaled.
    """
    rows: NDArray[np.float64] = features.astype(np.float64)
    if "mean" in model:
        rows = (rows - model["mean"]) / model["sd"]
    module.double()
    for name, parameter in parameters_by_wire_name(module).items():
        parameter.copy_(torch.from_numpy(model[name]))
    return Scored(class_probabilities(module(torch.from_numpy(rows))).numpy(), rows)
