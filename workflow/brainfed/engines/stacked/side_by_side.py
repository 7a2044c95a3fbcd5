"""How many folds are trained side by side: as many as fit into memory."""

import numpy as np
import torch

from brainfed.models.classifier import Classifier
from brainfed.samples.inputs import MethodInputs

STACK_BYTES = 3 << 30
"""Weights, gradients, Adam's two moments and a fold's own features, of the folds that are trained side by side."""


def stacks_of_folds(
    module: Classifier, inputs: MethodInputs, dtype: torch.dtype, *, pooled: bool
) -> list[tuple[int, ...]]:
    """Folds whose weights, gradients, moments and own features fit into `STACK_BYTES` side by side, evenly dealt.

    Beside them the server holds a model, and a round that stays near its start another.
    """
    trainers = 1 if pooled else len(inputs.institutions)
    parameters = sum(parameter.numel() for parameter in module.parameters())
    numbers = (4 * trainers + 2) * parameters + 2 * _designs_of_a_fold(module, inputs) * inputs.features[0].size
    fit = max(1, STACK_BYTES // (numbers * dtype.itemsize))
    stacks = np.array_split(np.arange(inputs.folds), -(-inputs.folds // fit))
    return [tuple(folds.tolist()) for folds in stacks]


def _designs_of_a_fold(module: Classifier, inputs: MethodInputs) -> int:
    """How many designs (n, d) of its own a fold needs, beside those that all folds share."""
    own = {"own": len(inputs.features) > 1, "propagated": len(inputs.features) > 1 or len(inputs.graphs) > 1}
    return sum(own[read] for read in set(module.reads.values()))
