"""Margins of all classes, and losses of institutions, from the scores of the models."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines.linear.design import LinearDesign
from brainfed.samples.class_scores import of_two_classes

Float64 = NDArray[np.float64]


def margins(scores: Tensor) -> Float64:
    """(n, classes) margins from the scores (C, n) of the models."""
    values = scores.cpu().numpy()
    return of_two_classes(values[0], "margin") if len(values) == 1 else np.asarray(values.T)


def training_losses(design: LinearDesign, members: NDArray[np.bool_], scores: Tensor) -> Float64:
    """(M,) mean squared errors of the scores (C, n) over each institution's training subjects; NaN without any."""
    squared = torch.square(scores - design.targets[: design.models]).mean(dim=0)
    used = design.training[0] * torch.from_numpy(members).to(squared)
    return np.asarray(((squared * used).sum(dim=1) / used.sum(dim=1)).cpu().numpy())


def held_out_losses(design: LinearDesign, scores: Tensor) -> dict[str, Tensor]:
    """Sums of squared errors (S, A) and numbers (S,) of the subjects that a system leaves out; scores (S, A, n)."""
    squared = torch.square(scores - design.targets[:, None]) * design.held_out[:, None]
    return {"loss": squared.sum(dim=2), "held-out": design.held_out.sum(dim=1)}
