"""Servers that minimise a sum over institutions: gradient descent, L-BFGS, and the choice of a penalty."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation import Message
from brainfed.federation.strategies._fedavg import Server

# A server that steps along the mean of gradients, after it has weighed the classes by their counts.
#
# Round 0 sums the numbers of subjects of each class, if classes are balanced. With the sums N_c and noise of standard
# deviation s, every subject of class c has the weight
#
#     v_c = (min_k N_k + s) / (N_c + s),
#
# at most 1, so that weights raise no subject's gradient. With much noise all weights approach 1. Further rounds step
#
#     w <- w - step sum_m g_m / N
#
# with the sums g_m of the institutions' gradients over N training subjects.


class GradientDescent(Server):
    """One shared model from sums of gradients.

    Args:
        start: (F, K, d) initial weights.
        step: (F,) size of a step.
        class_weights: (F, C) ones.
        count_noise: (F,) standard deviation of the noise on the summed counts of classes; None: no round of counts.
    """

    def __init__(
        self,
        institutions: tuple[int, ...],
        start: Tensor,
        step: Tensor,
        class_weights: Tensor,
        count_noise: Tensor | None,
    ) -> None:
        super().__init__(institutions)
        self.step, self.count_noise = step, count_noise
        self.weights, self.class_weights = start.clone(), class_weights.clone()

    def aggregate(self, _number: int, replies: Mapping[int, Message]) -> None:
        """Weigh the classes, or step."""
        ordered = [replies[code] for code in sorted(replies)]
        if "class-counts" in ordered[0].tensors:
            assert self.count_noise is not None
            counts = torch.stack([reply.tensors["class-counts"] for reply in ordered]).sum(dim=0)
            # One subject beside the noise, so that a class without subjects has a weight.
            level = counts.clamp(min=0) + self.count_noise.to(counts).clamp(min=1)[:, None]
            self.class_weights.copy_(level.min(dim=1, keepdim=True).values / level)
            return
        subjects = torch.stack([reply.samples for reply in ordered]).sum(dim=0).clamp(min=1)
        total = torch.stack([reply.tensors["gradient"] for reply in ordered]).sum(dim=0)
        self.weights -= (self.step.to(total) / subjects.to(total))[:, None, None] * total

    def broadcast(self, number: int) -> Mapping[int, Message]:
        """The weights of the classes after their counts, then the model; nothing before the first round."""
        if number == 0:
            return {}
        counted = self.count_noise is not None and number == 1
        return self.to_all({"class-weights": self.class_weights} if counted else {"weights": self.weights})

    def kept(self) -> Mapping[str, Tensor]:
        """The model and the weights of the classes."""
        return {"weights": self.weights, "class-weights": self.class_weights}


# Minimisation of a sum over institutions by L-BFGS at the server (Nocedal and Wright 2006, Algorithms 7.4 and 3.1).
#
# In a round every institution sends the loss and the gradient of its own subjects at the server's point. Their sums are
# those of the pooled data, and so is the minimum. A direction of large curvature, such as a signal that all features
# share, costs a few rounds: no step size has to fit all directions.
#
# Many models are fitted side by side, each with its own step; one that has converged stays where it is.

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
        rounds: most rounds; the last answer has the models, converged or not.
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


class QuasiNewton(Server):
    """Minimise an objective by L-BFGS under penalties (P,) above 0."""

    def __init__(self, institutions: tuple[int, ...], objective: Objective, penalties: Tensor) -> None:
        super().__init__(institutions)
        self.objective = objective
        self.accepted = torch.zeros_like(penalties, dtype=torch.bool)
        penalties = penalties.double()
        models, size = len(penalties), objective.features + 1
        shapes = {
            **dict.fromkeys(("trial", "point", "gradient", "direction"), (models, size)),
            **dict.fromkeys(("steps", "differences"), (MEMORY, models, size)),
            "inverse": (MEMORY, models),
            **dict.fromkeys(("step", "first"), (models,)),
        }
        self.tensors = {
            "penalties": penalties.clone(),
            "scale": 1 / (objective.curvature + penalties),
            "loss": torch.full_like(penalties, torch.inf),
            "rounds": torch.zeros((), dtype=torch.int64),
            **{name: penalties.new_zeros(shape) for name, shape in shapes.items()},
        }

    @property
    def converged(self) -> Tensor:
        """(P,) whether the gradient has vanished."""
        state = self.tensors
        vanished: Tensor = state["gradient"].norm(dim=1) <= self.objective.tolerance * state["first"]
        return state["loss"].isfinite() & vanished

    @property
    def rounds(self) -> int:
        """Number of rounds until now, also of a resumed training."""
        return int(self.tensors["rounds"])

    def finished(self) -> bool:
        """Whether every model has converged."""
        return bool(self.converged.all())

    def aggregate(self, number: int, replies: Mapping[int, Message]) -> None:
        """Add the replies up, accept or halve every model's step, and choose the next points.

        Tensors of a reply: `weight-gradient` (1, P, d), `bias-gradient` and `loss` (1, P), sums over the institution's
        subjects.
        """
        state, counts = self.tensors, self.objective.counts.double().clamp(min=1)
        state["rounds"] = torch.tensor(number + 1)
        weights, biases, losses = (self.total(replies, name) for name in ("weight-gradient", "bias-gradient", "loss"))
        gradient = torch.cat([weights, biases[:, None]], dim=1) / counts[:, None] + self._pull(state["trial"])
        loss = losses / counts + (self._pull(state["trial"]) * state["trial"]).sum(dim=1) / 2
        state["first"] = torch.where(state["first"] == 0, gradient.norm(dim=1), state["first"])
        predicted = (state["direction"] * state["gradient"]).sum(dim=1) * state["step"]
        slack = ROUNDING * state["loss"].abs().nan_to_num(posinf=0.0)
        known, resting = state["loss"].isfinite(), self.converged
        self.accepted = (loss <= state["loss"] + SUFFICIENT * predicted + slack) & ~resting
        self._remember(number, state["trial"] - state["point"], gradient - state["gradient"], self.accepted & known)
        state["point"] = torch.where(self.accepted[:, None], state["trial"], state["point"])
        state["gradient"] = torch.where(self.accepted[:, None], gradient, state["gradient"])
        state["loss"] = torch.where(self.accepted, loss, state["loss"])
        state["step"] = torch.where(self.accepted, 1.0, state["step"] / 2)
        self.advance(number)

    def advance(self, number: int) -> None:
        """Choose the next points."""
        state = self.tensors
        state["direction"] = torch.where((state["step"] == 1)[:, None], self._direction(number), state["direction"])
        stays = self.converged | (number + 1 >= self.objective.rounds)
        trial = state["point"] + torch.where(stays, 0.0, state["step"])[:, None] * state["direction"]
        state["trial"] = trial.to(self.objective.dtype).double()

    def repenalise(self, penalties: Tensor) -> None:
        """Go on from the same points under other penalties (P,); loss, gradient and memory are those of the new ones.

        The caller calls `advance` after it.
        """
        state = self.tensors
        change = penalties.double() - state["penalties"]
        state["penalties"] = penalties.double()
        state["gradient"] += self._pull(state["point"], change)
        state["loss"] += (self._pull(state["point"], change) * state["point"]).sum(dim=1) / 2
        state["differences"] += self._pull(state["steps"], change)
        curvature = (state["steps"] * state["differences"]).sum(dim=2)
        state["inverse"] = torch.where(curvature > 0, 1 / curvature, 0.0)
        state["step"] = torch.where(change == 0, state["step"], 1.0)

    def total(self, replies: Mapping[int, Message], name: str) -> Tensor:
        """The sum over institutions of one tensor, without its first axis; float64."""
        key = self.objective.prefix + name
        return torch.stack([replies[code].tensors[key][0].double() for code in sorted(replies)]).sum(dim=0)

    def broadcast(self, _number: int) -> Mapping[int, Message]:
        """`weight` (1, P, d) and `bias` (1, P) to all institutions."""
        trial, prefix = self.tensors["trial"].to(self.objective.dtype)[None], self.objective.prefix
        tensors = {f"{prefix}weight": trial[..., :-1].contiguous(), f"{prefix}bias": trial[..., -1].contiguous()}
        return self.to_all(tensors)

    def published(self) -> dict[str, NDArray[Any]]:
        """Number of rounds."""
        return {"rounds": np.array(self.rounds)}

    def kept(self) -> Mapping[str, Tensor]:
        """The points, the gradients, the penalties and the memory."""
        return self.tensors

    def _pull(self, weights: Tensor, penalties: Tensor | None = None) -> Tensor:
        """The penalty's gradient at weights (..., P, d + 1); 0 for the intercept."""
        pull = weights * (self.tensors["penalties"] if penalties is None else penalties)[:, None]
        pull[..., -1] = 0
        return pull

    def _remember(self, number: int, step: Tensor, difference: Tensor, moved: Tensor) -> None:
        """Put the newest pair in the place of the oldest; an empty one for a model that did not move."""
        state, slot = self.tensors, number % MEMORY
        curvature = (step * difference).sum(dim=1)
        fits = moved & (curvature > 0)
        state["steps"][slot] = step * fits[:, None]
        state["differences"][slot] = difference * fits[:, None]
        state["inverse"][slot] = torch.where(fits, 1 / curvature, 0.0)
        state["scale"] = torch.where(fits, curvature / difference.square().sum(dim=1), state["scale"])

    def _direction(self, number: int) -> Tensor:
        """(P, d + 1) minus the inverse curvature of the memory times the gradient (Algorithm 7.4)."""
        steps, differences, inverse = (self.tensors[name] for name in ("steps", "differences", "inverse"))
        oldest_first = [(number + 1 + age) % MEMORY for age in range(MEMORY)]
        ascent, shares = self.tensors["gradient"].clone(), torch.zeros_like(inverse)
        for slot in reversed(oldest_first):
            shares[slot] = inverse[slot] * (steps[slot] * ascent).sum(dim=1)
            ascent -= shares[slot, :, None] * differences[slot]
        ascent *= self.tensors["scale"][:, None]
        for slot in oldest_first:
            again = inverse[slot] * (differences[slot] * ascent).sum(dim=1)
            ascent += (shares[slot] - again)[:, None] * steps[slot]
        return -ascent


# Choice of a penalty by federated inner folds: L-BFGS along ascending costs, each from the minimum of the one before.
#
# The models of one group are fitted without one inner fold each. With the gradient every institution sends the loss of
# its held-out subjects, one number a model. Once all models of a group have converged, a weaker penalty follows, until
# the sum of these losses is far above the smallest. A small rise is no end: under strong penalties a model has little
# but the direction of a common signal, whose loss says nothing on the others.

FAR = 1.1
"""Loss, as a multiple of the smallest so far, above which weaker penalties are not tried."""


class PenaltyPath(Server):
    """G groups (P,) of the models of an objective that share a penalty, 1 / (cost count), with ascending costs."""

    def __init__(
        self, institutions: tuple[int, ...], objective: Objective, costs: Sequence[float], groups: Tensor
    ) -> None:
        super().__init__(institutions)
        self.groups = groups
        self.costs = torch.tensor(costs, dtype=torch.float64, device=groups.device)
        self.counts = objective.counts.double().clamp(min=1)
        count = int(groups.max()) + 1
        self.place = torch.zeros(count, dtype=torch.int64, device=groups.device)
        self.best = self.place.clone()
        self.losses = torch.full((count,), torch.inf, dtype=torch.float64, device=groups.device)
        self.ended = torch.zeros(count, dtype=torch.bool, device=groups.device)
        self.server = QuasiNewton(institutions, objective, self._penalties())
        self.validation = torch.full_like(self.counts, torch.inf)

    def finished(self) -> bool:
        """Whether every group has its penalty."""
        return bool(self.ended.all())

    def aggregate(self, number: int, replies: Mapping[int, Message]) -> None:
        """A round of all models; a group that has converged goes on to its next penalty or ends.

        Tensors of a reply: those of `QuasiNewton.aggregate`, and `validation-loss` (1, P).
        """
        self.server.aggregate(number, replies)
        losses = self.server.total(replies, "validation-loss")
        self.validation = torch.where(self.server.accepted, losses, self.validation)
        converged, moved = self.server.converged, False
        for group in torch.nonzero(~self.ended)[:, 0].tolist():
            own = self.groups == group
            if not bool(converged[own].all()):
                continue
            loss, last = self.validation[own].sum(), self.place[group] + 1 == len(self.costs)
            if loss < self.losses[group]:
                self.losses[group], self.best[group] = loss, self.place[group]
            self.ended[group] = last or bool(loss > FAR * self.losses[group])
            if not self.ended[group]:
                self.place[group] += 1
                moved = True
        if moved:
            self.server.repenalise(self._penalties())
            self.server.advance(number)

    def broadcast(self, number: int) -> Mapping[int, Message]:
        """The next points of all models."""
        return self.server.broadcast(number)

    def published(self) -> dict[str, NDArray[Any]]:
        """Cost of each group, and number of rounds."""
        return {"chosen": self.costs[self.best].cpu().numpy(), **self.server.published()}

    def kept(self) -> Mapping[str, Tensor]:
        """The models and the place on the path."""
        own = ("place", "best", "losses", "ended", "validation")
        return {**self.server.kept(), **{name: getattr(self, name) for name in own}}

    def _penalties(self) -> Tensor:
        """(P,) of the groups' present costs."""
        return 1 / (self.costs[self.place][self.groups] * self.counts)
