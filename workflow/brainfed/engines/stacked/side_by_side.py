"""Number of folds that are trained in parallel: as many as fit into memory."""

import numpy as np
import torch

from brainfed.models.classifier import Classifier
from brainfed.samples.inputs import MethodInputs

STACK_BYTES = 3 << 30
"""Bytes for the weights, gradients, Adam's two moments and own features of the folds that train in parallel."""


def stacks_of_folds(
    module: Classifier, inputs: MethodInputs, dtype: torch.dtype, *, pooled: bool
) -> list[tuple[int, ...]]:
    """Evenly sized groups of folds; the weights, gradients, moments and own features of a group fit into `STACK_BYTES`.

    In addition the server keeps one model, and FedProx another one. Sites that are apart leave their own features out:
    their numbers of subjects differ, and their groups must not. Each trains one of the institutions that are counted.
    """
    trainers = 1 if pooled else len(inputs.institutions)
    parameters = sum(parameter.numel() for parameter in module.parameters())
    own = 0 if inputs.link.apart else 2 * _designs_of_a_fold(module, inputs) * inputs.features[0].size
    numbers = (4 * trainers + 2) * parameters + own
    fit = max(1, STACK_BYTES // (numbers * dtype.itemsize))
    stacks = np.array_split(np.arange(inputs.folds), -(-inputs.folds // fit))
    return [tuple(folds.tolist()) for folds in stacks]


def _designs_of_a_fold(module: Classifier, inputs: MethodInputs) -> int:
    """Number of designs (n, d) that each fold needs for itself."""
    own = {"own": len(inputs.features) > 1, "propagated": len(inputs.features) > 1 or len(inputs.graphs) > 1}
    return sum(own[read] for read in set(module.reads.values()))
