"""A federated ridge regression, and the course of one fold of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from brainfed.engines.stacked.crossings import sizes_of
from brainfed.federation.ledger import Ledger
from brainfed.federation.robustness_settings import RobustnessSettings
from brainfed.runtime.jobs.run import Run
from brainfed.samples.inputs import MethodInputs

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
    """Course of one fold.

    Attributes:
        scores: (T, n, C) of all subjects after each direction or round.
        losses: (T, M) mean squared errors of training subjects after each direction or round.
        patterns: (K, d) of the K models.
        weights: (K, d) of the K models, for the design.
        intercepts: (K,) of their scores.
    """

    scores: NDArray[np.float64]
    losses: NDArray[np.float64]
    patterns: NDArray[np.float64]
    weights: NDArray[np.float64]
    intercepts: NDArray[np.float64]


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
    def members(self) -> NDArray[np.bool_]:
        """(M, n) masks of the institutions' subjects."""
        return np.asarray(np.arange(len(self.inputs.institutions))[:, None] == self.inputs.institution)

    def progress(self, done: int, total: int, what: str) -> None:
        """Progress of the fold as a part of all; every fold has as many rounds."""
        self.run.progress(self.fold * total + done, self.inputs.folds * total, f"fold {self.fold + 1}, {what}")

    def progress_at_most(self, done: int, most: int, what: str) -> None:
        """Progress of a fold whose solver ends by itself."""
        self.run.progress(done, most, f"fold {self.fold + 1} of {self.inputs.folds}, {what}", at_most=True)
