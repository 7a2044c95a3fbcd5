"""Minimisation of a sum over institutions by L-BFGS at the server (Nocedal and Wright 2006, Algorithms 7.4 and 3.1).

In a round every institution sends the loss and the gradient of its own subjects at the server's point. Their sums are
those of the pooled data, and so is the minimum. A direction of large curvature, such as a signal that all features
share, costs a few rounds: no step size has to fit all directions.

Many models are fitted side by side, each with its own step; one that has converged stays where it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.message import Message

MEMORY = 10
"""Pairs of steps and gradient differences that the server keeps."""
SUFFICIENT = 1e-4
"""Share of the predicted decrease that a step must reach (Armijo)."""
ROUNDING = 1e-7
"""Relative error of a loss from float32 scores."""


@dataclass(frozen=True)
class Objective:
    """P models, each the minimum of sum(loss) / count + penalty |w|^2 / 2, the intercept without penalty.

    Attributes:
        counts: (P,) subjects in the sum of each model.
        features: number of weights d of a model.
        curvature: a bound of the curvature of the mean loss; its reciprocal is the first step.
        tolerance: share of the gradient's norm at zero at which a model has converged.
        rounds: the answer to the last one holds the models, converged or not.
        dtype: number format of the messages; the server computes in float64.
        prefix: of the names on the wire.
    """

    counts: Tensor
    features: int
    curvature: float
    tolerance: float
    rounds: int
    dtype: torch.dtype = torch.float32
    prefix: str = ""


class QuasiNewton:
    """The server.

    Args:
        institutions: codes.
        objective: of the models.
        penalties: (P,) above 0.
    """

    def __init__(self, institutions: tuple[int, ...], objective: Objective, penalties: Tensor) -> None:
        self.institutions, self.objective = institutions, objective
        models, size = len(penalties), objective.features + 1
        self.accepted = torch.zeros(models, dtype=torch.bool, device=penalties.device)
        point = penalties.new_zeros(models, size, dtype=torch.float64)
        self.held = {
            "penalties": penalties.double(),
            "trial": torch.zeros_like(point),
            "point": point,
            "gradient": torch.zeros_like(point),
            "direction": torch.zeros_like(point),
            "steps": point.new_zeros(MEMORY, models, size),
            "differences": point.new_zeros(MEMORY, models, size),
            "inverse": point.new_zeros(MEMORY, models),
            "scale": 1 / (objective.curvature + penalties.double()),
            "loss": torch.full_like(penalties, torch.inf, dtype=torch.float64),
            "step": torch.zeros_like(penalties, dtype=torch.float64),
            "first": torch.zeros_like(penalties, dtype=torch.float64),
            "rounds": torch.zeros((), dtype=torch.int64),
        }

    def choose(self, _number: int) -> tuple[int, ...]:
        """All institutions."""
        return self.institutions

    @property
    def converged(self) -> Tensor:
        """(P,) whether the gradient has vanished."""
        held = self.held
        vanished: Tensor = held["gradient"].norm(dim=1) <= self.objective.tolerance * held["first"]
        return held["loss"].isfinite() & vanished

    @property
    def rounds(self) -> int:
        """Number of rounds until now, also of a resumed training."""
        return int(self.held["rounds"])

    def finished(self) -> bool:
        """Whether every model has converged."""
        return bool(self.converged.all())

    def aggregate(self, number: int, replies: Mapping[int, Message]) -> None:
        """Add the replies up, accept or halve every model's step, and choose the next points.

        Tensors of a reply: `weight-gradient` (1, P, d), `bias-gradient` and `loss` (1, P), sums over the institution's
        subjects.
        """
        held, counts = self.held, self.objective.counts.double().clamp(min=1)
        held["rounds"] = torch.tensor(number + 1)
        weights, biases, losses = (self.total(replies, name) for name in ("weight-gradient", "bias-gradient", "loss"))
        gradient = torch.cat([weights, biases[:, None]], dim=1) / counts[:, None] + self._pull(held["trial"])
        loss = losses / counts + (self._pull(held["trial"]) * held["trial"]).sum(dim=1) / 2
        held["first"] = torch.where(held["first"] == 0, gradient.norm(dim=1), held["first"])
        predicted = (held["direction"] * held["gradient"]).sum(dim=1) * held["step"]
        slack = ROUNDING * held["loss"].abs().nan_to_num(posinf=0.0)
        known, resting = held["loss"].isfinite(), self.converged
        self.accepted = (loss <= held["loss"] + SUFFICIENT * predicted + slack) & ~resting
        self._remember(number, held["trial"] - held["point"], gradient - held["gradient"], self.accepted & known)
        held["point"] = torch.where(self.accepted[:, None], held["trial"], held["point"])
        held["gradient"] = torch.where(self.accepted[:, None], gradient, held["gradient"])
        held["loss"] = torch.where(self.accepted, loss, held["loss"])
        held["step"] = torch.where(self.accepted, 1.0, held["step"] / 2)
        self.advance(number)

    def advance(self, number: int) -> None:
        """Choose the next points."""
        held = self.held
        held["direction"] = torch.where((held["step"] == 1)[:, None], self._direction(number), held["direction"])
        stays = self.converged | (number + 1 >= self.objective.rounds)
        trial = held["point"] + torch.where(stays, 0.0, held["step"])[:, None] * held["direction"]
        held["trial"] = trial.to(self.objective.dtype).double()

    def repenalise(self, penalties: Tensor) -> None:
        """Go on from the same points under other penalties (P,); loss, gradient and memory are those of the new ones.

        The caller calls `advance` after it.
        """
        held = self.held
        change = penalties.double() - held["penalties"]
        held["penalties"] = penalties.double()
        held["gradient"] += self._pull(held["point"], change)
        held["loss"] += (self._pull(held["point"], change) * held["point"]).sum(dim=1) / 2
        held["differences"] += self._pull(held["steps"], change)
        curvature = (held["steps"] * held["differences"]).sum(dim=2)
        held["inverse"] = torch.where(curvature > 0, 1 / curvature, 0.0)
        held["step"] = torch.where(change == 0, held["step"], 1.0)

    def total(self, replies: Mapping[int, Message], name: str) -> Tensor:
        """The sum over institutions of one tensor, without its first axis; float64."""
        key = self.objective.prefix + name
        return torch.stack([replies[code].tensors[key][0].double() for code in sorted(replies)]).sum(dim=0)

    def broadcast(self, _number: int) -> Mapping[int, Message]:
        """`weight` (1, P, d) and `bias` (1, P) to all institutions."""
        trial, prefix = self.held["trial"].to(self.objective.dtype)[None], self.objective.prefix
        tensors = {f"{prefix}weight": trial[..., :-1].contiguous(), f"{prefix}bias": trial[..., -1].contiguous()}
        return dict.fromkeys(self.institutions, Message(tensors))

    def published(self) -> dict[str, NDArray[Any]]:
        """Number of rounds."""
        return {"rounds": np.array(self.rounds)}

    def state(self) -> dict[str, NDArray[Any]]:
        """The points, the gradients, the penalties and the memory."""
        return {name: tensor.cpu().numpy() for name, tensor in self.held.items()}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy a `state`."""
        for name, tensor in self.held.items():
            self.held[name] = torch.from_numpy(arrays[name].copy()).to(tensor.device)

    def _pull(self, weights: Tensor, penalties: Tensor | None = None) -> Tensor:
        """The penalty's gradient at weights (..., P, d + 1); 0 for the intercept."""
        pull = weights * (self.held["penalties"] if penalties is None else penalties)[:, None]
        pull[..., -1] = 0
        return pull

    def _remember(self, number: int, step: Tensor, difference: Tensor, moved: Tensor) -> None:
        """Put the newest pair in the place of the oldest; an empty one for a model that did not move."""
        held, slot = self.held, number % MEMORY
        curvature = (step * difference).sum(dim=1)
        fits = moved & (curvature > 0)
        held["steps"][slot] = step * fits[:, None]
        held["differences"][slot] = difference * fits[:, None]
        held["inverse"][slot] = torch.where(fits, 1 / curvature, 0.0)
        held["scale"] = torch.where(fits, curvature / difference.square().sum(dim=1), held["scale"])

    def _direction(self, number: int) -> Tensor:
        """(P, d + 1) minus the inverse curvature of the memory times the gradient (Algorithm 7.4)."""
        steps, differences, inverse = (self.held[name] for name in ("steps", "differences", "inverse"))
        oldest_first = [(number + 1 + age) % MEMORY for age in range(MEMORY)]
        found, shares = self.held["gradient"].clone(), torch.zeros_like(inverse)
        for slot in reversed(oldest_first):
            shares[slot] = inverse[slot] * (steps[slot] * found).sum(dim=1)
            found -= shares[slot, :, None] * differences[slot]
        found *= self.held["scale"][:, None]
        for slot in oldest_first:
            again = inverse[slot] * (differences[slot] * found).sum(dim=1)
            found += (shares[slot] - again)[:, None] * steps[slot]
        return -found
