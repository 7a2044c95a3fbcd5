"""A federated ridge regression, one fold of it: its task, its data and its scores."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from brainfed.engines import sizes_of
from brainfed.federation import Ledger, RobustnessSettings
from brainfed.runtime import BoolArray, Float64
from brainfed.runtime.jobs import Run
from brainfed.samples import INNER_FOLDS, MethodInputs, Scaling, institution_folds, of_two_classes

Solver = Literal["conjugate_gradient", "fedavg"]


@dataclass(frozen=True)
class RidgeTask:
    """A federated ridge regression.

    Attributes:
        alphas: penalties to choose from, for training subjects of mean squared norm 1; ascending.
        solver: `conjugate_gradient` finds the pooled solution, `fedavg` averages local models.
        rounds: most directions of a fold, or rounds of averaging.
        local_steps: gradient steps of an institution in a round of averaging.
        tolerance: see `Krylov`.
        zscore: whether columns are z-scored by the moments of all training subjects; views have their own settings.
        shared_tensors: tensors that the method declares to leave an institution.
        robustness: attack on the weights of `fedavg`, and defence.
    """

    alphas: tuple[float, ...]
    solver: Solver
    rounds: int
    local_steps: int
    tolerance: float
    zscore: bool
    shared_tensors: Mapping[str, tuple[str, ...]]
    robustness: RobustnessSettings = field(default_factory=RobustnessSettings)


@dataclass(frozen=True)
class Curves:
    """Scores, losses and models of one fold.

    Attributes:
        scores: (T, n, C) of all subjects after each direction or round.
        losses: (T, M) mean squared errors of training subjects after each direction or round.
        patterns: (K, d) of the K models.
        weights: (K, d) of the K models, for the design.
        intercepts: (K,) of their scores.
    """

    scores: Float64
    losses: Float64
    patterns: Float64
    weights: Float64
    intercepts: Float64


@dataclass(frozen=True)
class FoldTask:
    """One fold: the task, the subjects, the machine, and the ledger that counts its crossings."""

    task: RidgeTask
    inputs: MethodInputs
    run: Run
    ledger: Ledger
    fold: int

    @property
    def sizes(self) -> dict[int, int]:
        """Institution -> number of subjects, of those that are here."""
        return sizes_of(self.inputs.institution)

    @property
    def members(self) -> BoolArray:
        """(M, n) masks of the institutions' subjects."""
        return np.asarray(np.arange(len(self.inputs.institutions))[:, None] == self.inputs.institution)

    def progress(self, done: int, total: int, what: str) -> None:
        """Progress of the fold as a part of all; every fold has as many rounds."""
        self.run.progress(self.fold * total + done, self.inputs.folds * total, f"fold {self.fold + 1}, {what}")

    def progress_at_most(self, done: int, most: int, what: str) -> None:
        """Progress of a fold whose solver ends by itself."""
        self.run.progress(done, most, f"fold {self.fold + 1} of {self.inputs.folds}, {what}", at_most=True)


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
        """The features of a fold under their scaling, with or without inner folds."""
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


def margins_and_losses(design: LinearDesign, members: BoolArray, every: Iterable[Tensor]) -> tuple[Float64, Float64]:
    """Margins (T, n, classes), and mean squared errors (T, M) over each institution's training subjects, NaN without.

    Args:
        members: (M, n) masks of the institutions' subjects.
        every: scores (C, n) of the models after each of T directions or rounds.
    """
    margins, losses = [], []
    for scores in every:
        values = scores.cpu().numpy()
        margins.append(of_two_classes(values[0], "margin") if len(values) == 1 else values.T)
        squared = torch.square(scores - design.targets[: design.models]).mean(dim=0)
        used = design.training[0] * torch.from_numpy(members).to(squared)
        losses.append(((squared * used).sum(dim=1) / used.sum(dim=1)).cpu().numpy())
    return np.stack(margins), np.stack(losses)


def held_out_losses(design: LinearDesign, scores: Tensor) -> dict[str, Tensor]:
    """Sums of squared errors (S, A) and numbers (S,) of the subjects that a system leaves out; scores (S, A, n)."""
    squared = torch.square(scores - design.targets[:, None]) * design.held_out[:, None]
    return {"loss": squared.sum(dim=2), "held-out": design.held_out.sum(dim=1)}
