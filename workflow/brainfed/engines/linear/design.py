"""Data of linear models in one fold: scaled features, targets, and the training subjects of each system."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from brainfed.samples.inner_folds import INNER_FOLDS, institution_folds
from brainfed.samples.inputs import MethodInputs
from brainfed.samples.view_scaling import Scaling


@dataclass(frozen=True)
class LinearDesign:
    """One fold; float64. System s = j C + c trains model c of C without the inner fold j - 1; j = 0: on all subjects.

    Attributes:
        features: (n, d) scaled; training subjects have a mean squared norm of 1.
        targets: (S, n) in {-1, +1}, 0 without a visible label.
        training: (S, n) 1 for training subjects of the system, else 0.
        held_out: (S, n) 1 for training subjects of the fold that the system leaves out, else 0.
        models: C; one for two classes.
    """

    features: Tensor
    targets: Tensor
    training: Tensor
    held_out: Tensor
    models: int

    @classmethod
    def of(
        cls, inputs: MethodInputs, fold: int, scaling: Scaling, *, inner: bool, device: torch.device
    ) -> "LinearDesign":
        """Build it from the features of a fold and their scaling, with or without inner folds."""
        labels, visible = inputs.labels[fold], inputs.training(fold)
        inside, count = (institution_folds(inputs, fold), INNER_FOLDS) if inner else (np.full(len(labels), -1), 0)
        features = scaling.of_subjects(inputs, fold)
        features /= np.sqrt(sum(own.view.weight for own in scaling.views))
        codes = [1] if inputs.classes == 2 else range(inputs.classes)
        targets = np.stack([np.where(visible, np.where(labels == code, 1.0, -1.0), 0.0) for code in codes])
        left_out = np.stack([np.zeros_like(visible), *(inside == index for index in range(count))])
        systems = np.repeat(left_out, len(targets), axis=0)
        return cls(
            torch.from_numpy(features).to(device, torch.float64),
            torch.from_numpy(np.tile(targets, (count + 1, 1))).to(device),
            torch.from_numpy((visible & ~systems).astype(np.float64)).to(device),
            torch.from_numpy((visible & systems).astype(np.float64)).to(device),
            len(targets),
        )
