"""One institution with and without one subject, and a server that keeps its uploads and knows all else.

The subject is one of the cohort, or the worst case of audits (Nasr et al. 2023, USENIX Security): at any weights its
gradient is one vector of norm C, orthogonal to the other subjects' gradients at the start. Without the subject no step
draws it: the number of subjects, which is public, does not change, nor does anybody else's draw.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines import parameters_by_wire_name
from brainfed.engines.private import Moment, Poisson, PrivateClients, PrivateCohort, clip_factors, subject_gradients
from brainfed.federation import PrivateSchedule
from brainfed.models import Classifier
from brainfed.runtime import Streams

WITHOUT, SUBJECT, WORST = "without", "subject", "worst case"
CANARIES = (SUBJECT, WORST)

PART = (0, 0)
START = Moment(0, 0, 0)
FLOOR = 1e-3
"""Standard deviation, over the norm of the subject's gradient, of what first order misses of an upload."""


class Planted(torch.nn.Module):
    """A network that gives rows with a mark the gradient +-`direction`, whatever its weights.

    Args:
        network: of two classes.
        direction: (parameters,).
    """

    def __init__(self, network: torch.nn.Module, direction: Tensor) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("direction", direction)

    def forward(self, *arguments: Tensor) -> Tensor:
        """Logits (rows, 2); the last argument (rows,) is 1 for a marked row, else 0."""
        *own, marks = arguments
        along = torch.cat([each.flatten() for each in self.network.parameters()]) @ self.direction
        # Logits (0, 0), at which the derivative of the loss along (1, -1) is -1 or 1.
        fixed = (along - along.detach()) * torch.tensor([1.0, -1.0]).to(along)
        return torch.where(marks[:, None] > 0, fixed, self._logits(*own))

    def _logits(self, *arguments: Tensor) -> Tensor:
        if not isinstance(self.network, Classifier):
            return self.network(*arguments)
        # Its `forward` takes weights by `get_parameter`, which does not see those of `functional_call`.
        products = {name: arguments[0] @ getattr(self.network, name) for name in self.network.reads}
        return self.network.logits(products, None)


@dataclass(frozen=True)
class Absent(Poisson):
    """Draws without one subject; those of all others stay as they are."""

    subject: int = -1

    def draw(self, place: int, fold: int, moment: Moment, training: Tensor) -> Tensor:
        """Positions of the drawn subjects but for `subject`."""
        drawn = super().draw(place, fold, moment, training)
        return drawn[drawn != self.subject]


@dataclass(frozen=True)
class Institution:
    """The institution, the same in all trials.

    Attributes:
        rows: arguments of the network, (n, ...) each.
        labels: (n,) 0 or 1.
        network: the network at the start.
        schedule: of stochastic gradient descent without momentum and decay: an upload is a sum.
        canary: position of the subject.
    """

    rows: tuple[Tensor, ...]
    labels: Tensor
    network: Callable[[], torch.nn.Module]
    schedule: PrivateSchedule
    canary: int

    def __post_init__(self) -> None:
        held = self.schedule
        if held.optimiser != "sgd" or held.momentum or held.weight_decay:
            raise ValueError("expected optimiser: sgd without momentum and weight decay")

    @property
    def others(self) -> Tensor:
        """(n,) whether a subject is not the canary."""
        return torch.arange(len(self.labels)) != self.canary

    @property
    def privacy(self) -> str:
        """In words."""
        return f"epsilon {self.schedule.epsilon:g}" if self.schedule.private else "none"

    def cohort(self, world: str) -> PrivateCohort:
        """The subjects; in the world of the worst case it stands in the canary's place."""
        marks = torch.zeros(len(self.labels))
        marks[self.canary] = float(world == WORST)

        def arguments(_place: int, _position: int, samples: Tensor, _moment: Moment | None) -> tuple[Tensor, ...]:
            return *(each[samples] for each in self.rows), marks[samples]

        return PrivateCohort(arguments, self.labels[None, None], (len(self.labels),), (0,), 2)

    def gradients(self, start: Mapping[str, Tensor] | None = None) -> Tensor:
        """(n, parameters) gradients of all subjects at `start`, or at the start; clipped if the schedule clips."""
        network = self.network()
        module = Planted(network, torch.zeros(sum(each.numel() for each in network.parameters())))
        with torch.no_grad():
            for name, each in parameters_by_wire_name(module).items():
                each.copy_(start[name] if start else each)
        samples = torch.arange(len(self.labels))
        rows = self.cohort(SUBJECT).rows(*PART, samples, START, next(module.parameters()))
        found = subject_gradients(module, rows, self.labels)
        whole = torch.cat([found.whole[name].flatten(1) for name, _ in module.named_parameters()], dim=1)
        return whole * clip_factors(found.norms(), self.schedule.clip)[:, None] if self.schedule.private else whole

    def typical(self) -> int:
        """Position of the subject whose gradient at the start has the median norm, before clipping."""
        plain = replace(self, schedule=replace(self.schedule, privacy="none"))
        return int(plain.gradients().norm(dim=1).argsort()[len(self.labels) // 2])

    def direction(self, seed: int = 0) -> Tensor:
        """(parameters,) of norm C, orthogonal to the others' gradients at the start."""
        others = self.gradients()[self.others].double()
        drawn = torch.randn(others.shape[1], generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        basis = torch.linalg.qr(others.T).Q
        left = drawn - basis @ (basis.T @ drawn)
        return (left * self.schedule.clip / left.norm()).float()

    def clients(self, world: str, streams: Streams, direction: Tensor) -> PrivateClients:
        """The institution before the first round of a world."""
        module = Planted(self.network(), direction)
        shares = parameters_by_wire_name(module)
        found = PrivateClients([[module]], self.cohort(world), self.schedule, streams, shares)
        if world == WITHOUT:
            found.poisson = Absent(self.schedule.batch, streams, self.canary)
        return found


@dataclass(frozen=True)
class Upload:
    """What the server has of one round.

    Attributes:
        total: (parameters,) sum of gradients and noise over the local steps, from the models before and after.
        start: parameters at the start of the round, by name on the wire.
    """

    total: Tensor
    start: Mapping[str, Tensor]


def uploads(clients: PrivateClients) -> Iterator[Upload]:
    """All rounds of a world."""
    schedule, count = clients.schedule, int(clients.samples[PART])
    size = clients.poisson.rate(count) * count / schedule.learning_rate
    for number in range(schedule.rounds):
        start = {name: each[0] for name, each in clients.start().items()}
        reply = clients.fit(number, (0,))[0].tensors
        yield Upload(torch.cat([(start[name] - reply[name][0]).double().flatten() for name in start]) * size, start)


@dataclass(frozen=True)
class Server:
    """Knows the other subjects, the code and the model at every round's start; not the draws and not the noise.

    Attributes:
        institution: all of it but whether the canary is there.
        direction: gradient of the worst case.
        multiplier: of the noise; 0 without.
        rate: probability that a step includes a subject.
        steps: local steps of a round.
    """

    institution: Institution
    direction: Tensor
    multiplier: float
    rate: float
    steps: int

    @classmethod
    def of(cls, institution: Institution) -> "Server":
        """The server of an institution."""
        direction = institution.direction()
        clients = institution.clients(SUBJECT, Streams(0), direction)
        count = len(institution.labels)
        steps = clients.poisson.steps(count) * institution.schedule.local_epochs
        return cls(institution, direction, float(clients.multipliers[PART]), clients.poisson.rate(count), steps)

    @property
    def scale(self) -> float:
        """Standard deviation of a step's noise."""
        return self.multiplier * self.institution.schedule.clip

    def log_ratios(self, upload: Upload) -> tuple[float, float]:
        """Log likelihood of the upload with each of `CANARIES`, less that without; see `log_ratio`."""
        inside, own = self.institution.others, self.institution.canary
        gradients = self.institution.gradients(upload.start).double()
        planted = self.direction.double() * (1 if self.institution.labels[own] else -1)
        subject, worst = (
            log_ratio(upload.total, gradient, gradients[inside], self.rate, self.steps, self.scale)
            for gradient in (gradients[own], planted)
        )
        return subject, worst

    def trial(
        self, world: str, streams: Streams, differences: Tensor
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(rounds, 2) for `CANARIES`: log likelihood ratios of each round, and products with `differences`."""
        found = list(uploads(self.institution.clients(world, streams, self.direction)))
        along = torch.einsum("rd,crd->rc", torch.stack([each.total for each in found]), differences)
        return np.array([self.log_ratios(each) for each in found]), along.numpy()

    def totals(self, world: str, streams: Streams) -> Tensor:
        """(rounds, parameters) of one training."""
        return torch.stack([each.total for each in uploads(self.institution.clients(world, streams, self.direction))])

    def mean_differences(self, pairs: int, seed: int) -> Tensor:
        """(2, rounds, parameters) mean upload with each canary less that without, over own trainings of the server.

        Both worlds of a pair have one stream: their noise is the same, and cancels where the models are.
        """
        runs = [Streams(seed, number) for number in range(pairs)]
        without = torch.stack([self.totals(WITHOUT, each) for each in runs]).mean(dim=0)
        return torch.stack(
            [torch.stack([self.totals(world, each) for each in runs]).mean(dim=0) - without for world in CANARIES]
        )


def log_ratio(total: Tensor, gradient: Tensor, others: Tensor, rate: float, steps: int, scale: float) -> float:
    """Log likelihood ratio of an upload with a subject and without it, as sums of Gaussians with one covariance.

    Exact for one step with everybody (rate 1): N(sum of the others' gradients + gradient or 0, scale^2). For more steps
    with draws it takes the gradients at the start of the round, and the mean and covariance of the numbers of draws.

    Args:
        total: (d,) of the upload.
        gradient: (d,) of the subject.
        others: (m, d) gradients.
        rate: probability that a step includes a subject.
        steps: of the round.
        scale: standard deviation of a step's noise.
    """
    shift = steps * rate * gradient
    rest = total - steps * rate * others.sum(dim=0) - shift / 2
    variance = steps * scale**2 + float((FLOOR * shift).square().sum())
    spread = others * (steps * rate * (1 - rate)) ** 0.5
    inner = torch.eye(len(others), dtype=others.dtype) * variance + spread @ spread.T
    weighed = (shift - spread.T @ torch.linalg.solve(inner, spread @ shift)) / variance
    return float(rest @ weighed)
